package topology

// Load reads a topology file (YAML) and validates it for a mode ("" = what holds in every mode). The error is Faults,
// all of them, with the lines of the file.
func Load(b []byte, mode string) (*Topology, error) {
	t := &Topology{}
	lines, faults := decode(b, t)
	for _, f := range t.check(Check{Mode: mode}, len(faults) == 0) {
		if !faults.covers(f.Path) { // what is missing because it could not be read is reported once
			faults = append(faults, f)
		}
	}
	faults.locate(lines)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// covers says whether a fault was already reported at a path.
func (f Faults) covers(path string) bool {
	for _, one := range f {
		if one.Path == path {
			return true
		}
	}
	return false
}
