package demo

import "context"

// Plain does the whole job in one loop, without Kafka: what the distributed run must agree with.
func Plain(ctx context.Context, root string) (*Index, error) {
	paths, _, err := Files(root)
	if err != nil {
		return nil, err
	}
	rows := map[string]*Entry{}
	var failures []Failure
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := readFile(root, p)
		if err != nil {
			failures = append(failures, Failure{Path: p, Stage: StageRead, Reason: err.Error()})
			continue
		}
		row(rows, digestKey(f.Digest)).AddPath(p)
		d, err := parseFile(root, p)
		if err != nil {
			failures = append(failures, Failure{Path: p, Stage: StageParse, Reason: err.Error()})
			continue
		}
		row(rows, pathKey(p)).Decls = &d
	}
	return newIndex(len(paths), rows, failures), nil
}

func row(rows map[string]*Entry, key string) *Entry {
	e := rows[key]
	if e == nil {
		e = &Entry{}
		rows[key] = e
	}
	return e
}
