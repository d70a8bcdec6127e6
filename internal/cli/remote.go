package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/sidecar/client"
)

// recoverFor bounds the wait for a sidecar whose view is still loading.
const recoverFor = 30 * time.Second

// remote is a sidecar.
type remote struct {
	server string
	token  string
}

func (r *remote) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.server, "server", client.DefaultAddress, "address of a sidecar")
	cmd.Flags().StringVar(&r.token, "token", "", "token of the sidecar (better: QUIESCE_TOKEN)")
}

// client checks the address; it does not connect.
func (r *remote) client(cmd *cobra.Command) (*client.Client, error) {
	c, err := client.New(client.Config{Address: r.server, Token: r.token})
	if err != nil {
		return nil, usage(cmd, "--server: %w", err)
	}
	return c, nil
}

// batch checks the name of a batch and makes a client for it.
func (r *remote) batch(cmd *cobra.Command, id string) (*client.Client, error) {
	if err := codecs.ValidID("batch", id); err != nil {
		return nil, usage(cmd, "%w", err)
	}
	return r.client(cmd)
}

// patient calls fn again while the sidecar's view is loading.
func patient(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(recoverFor)
	for {
		err := fn()
		if !errors.Is(err, client.ErrRecovering) || time.Now().After(deadline) {
			return friendly(err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// friendly says what to do about a sidecar that is not there.
func friendly(err error) error {
	if errors.Is(err, client.ErrUnreachable) {
		return fmt.Errorf("%w (start one with quiesce dev or quiesce run, or name it with --server)", err)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
