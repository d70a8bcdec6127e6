package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Script is one conformance entry. See the package's manual for what the fields mean.
type Script struct {
	ID     string        `yaml:"id"`
	Title  string        `yaml:"title"`
	Source string        `yaml:"source"` // public tracker entry of a comparable system
	Steps  []Step        `yaml:"steps"`
	Expect []Expectation `yaml:"expect"`
}

// Step is one thing to do: Send, Await, Absent, Settle, Propose or Take.
type Step struct {
	Send    string            `yaml:"send"`
	Await   string            `yaml:"await"`
	Absent  string            `yaml:"absent"`
	Settle  bool              `yaml:"settle"`
	Propose string            `yaml:"propose"`
	Take    int               `yaml:"take"`
	Of      string            `yaml:"of"`
	Tasks   int               `yaml:"tasks"`
	As      string            `yaml:"as"`
	Round   uint32            `yaml:"round"`
	Dies    bool              `yaml:"dies"`
	Data    map[string]any    `yaml:"data"`
	Value   *string           `yaml:"value"`
	Each    string            `yaml:"each"`
	Times   int               `yaml:"times"`
	Key     string            `yaml:"key"`
	Headers map[string]string `yaml:"headers"`
}

// Expectation is what must hold for one batch or job in the end.
type Expectation struct {
	Of          string            `yaml:"of"`
	Events      map[string]int    `yaml:"events"`
	State       string            `yaml:"state"`
	Empty       *bool             `yaml:"empty"`
	Counts      map[string]uint32 `yaml:"counts"`
	Audit       map[string]uint64 `yaml:"audit"`
	Round       uint32            `yaml:"round"`
	Reason      string            `yaml:"reason"` // a text in it
	DeadLetters int               `yaml:"dead_letters"`
	DeadLetter  string            `yaml:"dead_letter"`
	Steps       map[string]string `yaml:"steps"`
	Tasks       *int              `yaml:"tasks"`
	Deliveries  map[string]int    `yaml:"deliveries"`
}

var scriptID = regexp.MustCompile(`^C[0-9]{2}[a-z]?$`)

// Load reads all scripts of a folder, in order of their ids.
func Load(dir fs.FS) ([]Script, error) {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	var out []Script
	for _, name := range names {
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
		var s Script
		if err := yaml.UnmarshalWithOptions(b, &s, yaml.DisallowUnknownField()); err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); s.ID != want {
			return nil, fmt.Errorf("script %s: id %q, the file says %q", name, s.ID, want)
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *Script) validate() error {
	var errs []error
	if !scriptID.MatchString(s.ID) {
		errs = append(errs, fmt.Errorf("id %q is not like C07", s.ID))
	}
	if s.Title == "" || len(s.Steps) == 0 || len(s.Expect) == 0 {
		errs = append(errs, errors.New("needs a title, steps and expectations"))
	}
	known := map[string]bool{}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Of == "" {
			st.Of = "a"
		}
		known[st.Of] = true
		if err := st.validate(); err != nil {
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		}
		if _, _, err := st.span(); err != nil {
			errs = append(errs, fmt.Errorf("step %d: %w", i+1, err))
		}
	}
	for i := range s.Expect {
		e := &s.Expect[i]
		if e.Of == "" {
			e.Of = "a"
		}
		if job, _, _ := strings.Cut(e.Of, "."); !known[e.Of] && !known[job] {
			errs = append(errs, fmt.Errorf("expectation %d: no step is about %q", i+1, e.Of))
		}
	}
	return errors.Join(errs...)
}

func (s *Step) validate() error {
	verbs := 0
	for _, given := range []bool{s.Send != "", s.Await != "", s.Absent != "", s.Settle, s.Propose != "", s.Take > 0} {
		if given {
			verbs++
		}
	}
	if verbs != 1 {
		return errors.New("one of send, await, absent, settle, propose and take")
	}
	return nil
}

// span is the range of $i; without each it is one number.
func (s *Step) span() (lo, hi int, err error) {
	if s.Each == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(s.Each, "-")
	lo, err1 := strconv.Atoi(a)
	hi, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || hi < lo {
		return 0, 0, fmt.Errorf("each %q is not LO-HI", s.Each)
	}
	return lo, hi, nil
}

// What data can name.
const (
	varItem  = "$i"
	varRun   = "$run"
	varQueue = "$queue"
	varLarge = "$large"
)

// large is more than a row takes by value, in base64.
var large = strings.Repeat("AAAA", 64<<10)

// mentions says whether the data names a variable.
func (s *Step) mentions(name string) bool {
	b, err := json.Marshal(s.Data)
	return err == nil && bytes.Contains(b, []byte(strconv.Quote(name)))
}

// body is the value of a record. vars are what stands for the texts "$...", as JSON.
func (s *Step) body(vars map[string]string) ([]byte, error) {
	if s.Value != nil {
		return []byte(*s.Value), nil
	}
	data := s.Data
	if data == nil {
		data = map[string]any{}
	}
	b, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("data of %s: %w", s.Send, err)
	}
	for name, value := range vars {
		b = bytes.ReplaceAll(b, []byte(strconv.Quote(name)), []byte(value))
	}
	return b, nil
}
