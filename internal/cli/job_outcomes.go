package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/internal/sidecar/api"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// Files of an outcome manifest.
const (
	fileOK           = "ok.jsonl"
	fileFailed       = "failed.jsonl"
	fileNeverStarted = "never_started.jsonl"
)

func (a *app) jobOutcomes() *cobra.Command {
	var dir, step string
	cmd := a.jobReader(&cobra.Command{
		Use:   "outcomes ID",
		Short: "Write the tasks of an ended job into files: ok, failed, never started",
		Long: `Write the tasks of an ended job's fan-out steps into three files of JSON lines: ok.jsonl (ok and skipped), failed.jsonl
(failed, timed out, lost, cancelled) and never_started.jsonl (cancelled or timed out before they were given to the queue;
of a job that was redriven they are among the failed). A task has its step, batch, index, outcome, and, where it is not ok,
the reason. The index is the place in the splitter's list.`,
		Example: "  quiesce job outcomes november --out ./november",
	}, func(ctx context.Context, c *client.Client, id client.JobID) error {
		return a.writeOutcomes(ctx, c, id, step, dir)
	})
	cmd.Flags().StringVar(&dir, "out", ".", "folder for the files; made if it is missing")
	cmd.Flags().StringVar(&step, "step", "", "only this step")
	return cmd
}

// writeOutcomes replaces the files at once, when they are complete.
func (a *app) writeOutcomes(ctx context.Context, c *client.Client, id client.JobID, step, dir string) (err error) {
	j, err := c.Job(ctx, id)
	if err != nil {
		return err
	}
	if !j.Terminal {
		return fmt.Errorf("job %s is %s: its outcomes are not final", id, j.State)
	}
	released, err := releases(ctx, c, j)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := openAll(dir, fileOK, fileFailed, fileNeverStarted)
	defer func() { err = errors.Join(err, files.discard()) }()
	if err != nil {
		return err
	}
	listed := map[string]uint32{}
	for t, err := range c.JobTasks(ctx, id, step) {
		if err != nil {
			return err
		}
		listed[t.Step]++
		if err := files.put(fileOf(t, released[t.Step]), t); err != nil {
			return err
		}
	}
	for _, s := range j.Steps {
		if (step == "" || step == s.Step) && s.Counts != nil && listed[s.Step] != s.Counts.Total {
			return fmt.Errorf("step %s of job %s has %d tasks, %d were listed: was its batch collected?", s.Step, id, s.Counts.Total, listed[s.Step])
		}
	}
	counts, err := files.commit()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"job": id.Job, "out": dir, "ok": counts[fileOK], "failed": counts[fileFailed], "never_started": counts[fileNeverStarted]})
	}
	a.printf("%d ok, %d failed, %d never started, in %s\n", counts[fileOK], counts[fileFailed], counts[fileNeverStarted], dir)
	return nil
}

// releases says how many tasks of each fan-out step have been given to the queue, in the last round.
func releases(ctx context.Context, c *client.Client, j *api.Job) (map[string]uint32, error) {
	out := map[string]uint32{}
	for _, s := range j.Steps {
		if s.Batch == "" {
			continue
		}
		b, err := c.Get(ctx, s.Batch)
		if err != nil {
			return nil, err
		}
		if out[s.Step] = b.Released; b.Window == 0 || b.Round > 1 { // a redrive releases a set, not a beginning
			out[s.Step] = math.MaxUint32
		}
	}
	return out, nil
}

// fileOf says into which file a task goes.
func fileOf(t *api.JobTask, released uint32) string {
	switch t.Outcome {
	case "ok", "skipped":
		return fileOK
	case "cancelled", "timed_out":
		if t.Index >= released {
			return fileNeverStarted
		}
	case "pending":
		return fileNeverStarted
	}
	return fileFailed
}

// outFiles are files that appear all together, complete.
type outFiles struct {
	dir   string
	files map[string]*outFile
}

type outFile struct {
	f *os.File
	w *bufio.Writer
	n int
}

const partial = ".partial"

func openAll(dir string, names ...string) (*outFiles, error) {
	o := &outFiles{dir: dir, files: map[string]*outFile{}}
	for _, n := range names {
		f, err := os.Create(filepath.Join(dir, n+partial))
		if err != nil {
			return o, err
		}
		o.files[n] = &outFile{f: f, w: bufio.NewWriter(f)}
	}
	return o, nil
}

func (o *outFiles) put(name string, v any) error {
	o.files[name].n++
	return json.NewEncoder(o.files[name].w).Encode(v)
}

// commit gives the files their names and returns how many lines each has.
func (o *outFiles) commit() (map[string]int, error) {
	counts := map[string]int{}
	for name, f := range o.files {
		counts[name] = f.n
		if err := errors.Join(f.w.Flush(), f.f.Close()); err != nil {
			return nil, err
		}
	}
	for name := range counts {
		if err := os.Rename(filepath.Join(o.dir, name+partial), filepath.Join(o.dir, name)); err != nil {
			return nil, err
		}
	}
	o.files = nil
	return counts, nil
}

// discard removes what was not committed.
func (o *outFiles) discard() error {
	var errs []error
	for name, f := range o.files {
		_ = f.f.Close()
		errs = append(errs, os.Remove(filepath.Join(o.dir, name+partial)))
	}
	o.files = nil
	return errors.Join(errs...)
}
