package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/topology"
)

func (a *app) topologyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "topology",
		Short:   "Check and draw a topology file",
		Example: "  quiesce topology validate --mode ledger testdata/topologies/go-index.yaml",
	}, a.topologyValidate(), a.topologyRender())
}

func (a *app) topologyValidate() *cobra.Command {
	var mode string
	cmd := &cobra.Command{
		Use:     "validate FILE...",
		Short:   "Report every fault of topology files at once, with lines",
		Example: "  quiesce topology validate --mode markers pipeline.yaml",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := checkMode(cmd, mode, true); err != nil {
				return err
			}
			bad := 0
			for _, name := range files {
				ok, err := a.validateTopology(cmd, name, mode)
				if err != nil {
					return err
				}
				if !ok {
					bad++
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d of %d topologies have faults", bad, len(files))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "also check what this mode cannot do: "+strings.Join(topology.Modes(), ", "))
	a.jsonFlag(cmd)
	return cmd
}

// validation is the result for one file, as JSON.
type validation struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Topology string   `json:"topology,omitempty"`
	Version  uint32   `json:"version,omitempty"`
	Modes    []string `json:"modes,omitempty"`
	Faults   []string `json:"faults,omitempty"`
}

func (a *app) validateTopology(cmd *cobra.Command, name, mode string) (bool, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return false, usage(cmd, "%v", err)
	}
	v := validation{File: name}
	t, err := topology.Load(b, mode)
	if err != nil {
		v.Faults = strings.Split(err.Error(), "\n")
	} else {
		v.Valid, v.Topology, v.Version, v.Modes = true, t.Name, t.Version, t.Fits()
	}
	if a.json {
		return v.Valid, a.printJSON(v)
	}
	if v.Valid {
		a.printf("%s: %s version %d is valid; modes: %s\n", name, v.Topology, v.Version, strings.Join(v.Modes, ", "))
	}
	for _, f := range v.Faults {
		a.notef("%s: %s\n", name, f)
	}
	return v.Valid, nil
}

func (a *app) topologyRender() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "render FILE",
		Short:   "Draw a topology as text, Mermaid or Graphviz DOT",
		Example: "  quiesce topology render --format dot pipeline.yaml | dot -Tsvg > pipeline.svg",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			t, err := loadTopology(cmd, files[0], "")
			if err != nil {
				return err
			}
			switch format {
			case "text":
				a.printf("%s", t.Text())
			case "mermaid":
				a.printf("%s", t.Mermaid())
			case "dot":
				a.printf("%s", t.DOT())
			default:
				return usage(cmd, "--format %q: text, mermaid or dot", format)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, mermaid or dot")
	return cmd
}

// loadTopology reads a topology file that a command needs; whatever is wrong with it is a usage error.
func loadTopology(cmd *cobra.Command, name, mode string) (*topology.Topology, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(cmd, "topology: %v", err)
	}
	t, err := topology.Load(b, mode)
	if err != nil {
		return nil, usage(cmd, "topology %s:\n%v", name, err)
	}
	return t, nil
}

// checkMode refuses a word that is no mode.
func checkMode(cmd *cobra.Command, mode string, optional bool) error {
	if mode == "" && optional || slices.Contains(topology.Modes(), mode) {
		return nil
	}
	return usage(cmd, "--mode %q: one of %s", mode, strings.Join(topology.Modes(), ", "))
}
