package feeder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quiesce/quiesce/codecs"
)

// checkpoint is the file that makes a feeder resumable: JSON, replaced as a whole.
//
//	{"quiesce_feed":1, "batch":"b-7", "run":"01J...", "mode":"ledger", "feeder":0, "topology":"go-index@1",
//	 "plan":"ledger;go-index@1;1;asts=4,paths=4", "acked":1200, "digest":"<64 hex digits>", "sealed":false}
//
// acked is the number of records, in the order of the input, of which all are acked; digest is the rolling digest over
// them. A record above acked may have been sent: it is sent again with the same index.
type checkpoint struct {
	Version  int    `json:"quiesce_feed"`
	Batch    string `json:"batch"`
	Run      string `json:"run"`
	Mode     string `json:"mode"`
	Feeder   uint32 `json:"feeder"`
	Topology string `json:"topology"`
	Plan     string `json:"plan"` // text of codecs.Plan: the partition counts that START froze
	Acked    uint32 `json:"acked"`
	Digest   string `json:"digest"`
	Sealed   bool   `json:"sealed"`
}

// readCheckpoint reads the file; nil if there is none.
func readCheckpoint(path string) (*checkpoint, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	c := &checkpoint{}
	if err := json.Unmarshal(b, c); err != nil || c.Version != 1 || len(c.Digest) != 2*sha256.Size || codecs.ValidID("run", c.Run) != nil {
		return nil, fmt.Errorf("checkpoint %s: not a checkpoint of this release: %w", path, errors.Join(err, ErrCheckpoint))
	}
	return c, nil
}

// write replaces the file, so that a crash leaves the old or the new one.
func (c *checkpoint) write(path string) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// fits says whether the file is about the same feeding as the configuration.
func (c *checkpoint) fits(path string, want *checkpoint) error {
	var diff error
	check := func(field, have, want string) {
		if have != want && diff == nil {
			diff = fmt.Errorf("checkpoint %s: it is of %s %s, this is %s: %w", path, field, have, want, ErrCheckpoint)
		}
	}
	check("batch", c.Batch, want.Batch)
	check("mode", c.Mode, want.Mode)
	check("feeder", fmt.Sprint(c.Feeder), fmt.Sprint(want.Feeder))
	check("topology", c.Topology, want.Topology)
	if want.Run != "" {
		check("run", c.Run, want.Run)
	}
	return diff
}

// digest is the rolling digest of the input: d(n+1) = sha256(d(n), key, value), each with its length.
type digest [sha256.Size]byte

func (d digest) next(key, value []byte) digest {
	h := sha256.New()
	h.Write(d[:])
	var size [8]byte
	for _, part := range [][]byte{key, value} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	h.Sum(d[:0])
	return d
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(s string) (d digest, err error) {
	_, err = hex.Decode(d[:], []byte(s))
	return d, err
}
