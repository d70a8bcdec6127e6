package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// jsonFlag gives a command that prints data its --json.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, one value a line")
}

// printJSON prints v on one line.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}

// printf prints a line of the result.
func (a *app) printf(format string, v ...any) { fmt.Fprintf(a.out, format, v...) }

// notef prints a line that is no result.
func (a *app) notef(format string, v ...any) { fmt.Fprintf(a.err, format, v...) }

// table prints rows in aligned columns; the first row is the heading.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	return t.Flush()
}

// tempDir makes a folder that remove takes away.
func tempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "quiesce")
	if err != nil {
		return "", nil, fmt.Errorf("temporary folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
