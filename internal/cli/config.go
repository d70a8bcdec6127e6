package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	configName = "quiesce.yaml"
	envPrefix  = "QUIESCE_"
)

// settle gives every flag of cmd that is not on the command line its value from the environment or, weaker, from the
// configuration file. What the file has beside flags is returned.
func settle(cmd *cobra.Command, path string) (*sections, error) {
	if path == "" {
		path = os.Getenv(envPrefix + "CONFIG")
	}
	files := koanf.New("\x00")
	rest := &sections{}
	found, err := configFile(path)
	if err != nil {
		return nil, err
	}
	if found != "" {
		if err := files.Load(file.Provider(found), yaml.Parser()); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", found, err)
		}
		if err := unknownKeys(cmd.Root(), files); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", found, err)
		}
		if rest, err = readSections(files.Raw()); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", found, err)
		}
	}
	environ := koanf.New("\x00")
	err = environ.Load(env.Provider("\x00", env.Opt{Prefix: envPrefix, TransformFunc: func(k, v string) (string, any) {
		if v == "" {
			return "", nil // empty is unset
		}
		return strings.ToLower(strings.TrimPrefix(k, envPrefix)), v
	}}), nil)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		key := strings.ReplaceAll(f.Name, "-", "_")
		if first != nil || f.Changed || f.Name == "help" || f.Name == "config" {
			return
		}
		switch {
		case environ.Exists(key):
			first = set(f, environ, key, envPrefix+strings.ToUpper(key))
		case files.Exists(key):
			first = set(f, files, key, found+": "+key)
		}
	})
	return rest, first
}

func set(f *pflag.Flag, k *koanf.Koanf, key, where string) error {
	v := k.String(key)
	if list := k.Strings(key); len(list) > 0 {
		v = strings.Join(list, ",")
	}
	if err := f.Value.Set(v); err != nil {
		return fmt.Errorf("%s: invalid value %q: %w", where, v, err)
	}
	return nil
}

// configFile finds the file to read; "" = none. A file that was asked for must exist.
func configFile(path string) (string, error) {
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("configuration: %w", err)
		}
		return path, nil
	}
	places := []string{configName}
	if dir, err := os.UserConfigDir(); err == nil {
		places = append(places, filepath.Join(dir, "quiesce", configName))
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("configuration: %w", err)
		}
	}
	return "", nil
}

// unknownKeys refuses a key that no flag of any command has: a typing error must not pass for a default.
func unknownKeys(root *cobra.Command, k *koanf.Koanf) error {
	known := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[strings.ReplaceAll(f.Name, "-", "_")] = true })
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	var bad []string
	for key := range k.Raw() {
		if !known[key] && !isSection(key) {
			bad = append(bad, key)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	sort.Strings(bad)
	return fmt.Errorf("unknown keys: %s", strings.Join(bad, ", "))
}
