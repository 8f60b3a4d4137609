"""Write the dashboards and the alerts."""

from ops.monitoring.files import FOLDER, files

for path, text in files().items():
    target = FOLDER / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
