"""What a user looks at, proves or changes by hand."""
