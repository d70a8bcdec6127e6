package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// labelFilter reads name=value texts.
func labelFilter(cmd *cobra.Command, texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, l := range texts {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, usage(cmd, "--label %q: want name=value", l)
		}
		labels[k] = v
	}
	return labels, nil
}
