"""What every table of the pipeline holds: its columns, their types, units and meanings."""
