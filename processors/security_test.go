package processors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestSASL(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			prefix := "s"
			c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "u,ser=", "secret"))
			require.NoError(t, err)
			defer c.Close()
			cfg := Config{Bootstrap: c.ListenAddrs(), Prefix: prefix, Machine: &tally{}, DataDir: t.TempDir(),
				Security: Security{Mechanism: mechanism, User: "u,ser=", Password: "secret"}}
			k, err := kgo.NewClient(kgoOptions(cfg)...)
			require.NoError(t, err)
			defer k.Close()
			d := &deployment{t: t, bootstrap: c.ListenAddrs()[0], prefix: prefix, client: k}
			d.create()
			p, stop := d.start(cfg)
			defer stop()
			d.send(d.report("k", 1))
			d.settled(p)

			if mechanism != "SCRAM-SHA-512" { // refusals take their time
				return
			}
			cfg.Security.Password = "wrong"
			cfg.DataDir = t.TempDir()
			p, stop = d.start(cfg)
			defer stop()
			require.Eventually(t, func() bool { return counterValue(t, p.m.restarts) > 0 }, time.Minute, 10*time.Millisecond)
			require.Error(t, p.Ready())
		})
	}
}

// TestScramRefusesABrokerThatDoesNotKnowThePassword uses the example of RFC 7677.
func TestScramExampleOfTheRFC(t *testing.T) {
	c := newScram("SCRAM-SHA-256")
	require.NoError(t, c.Begin("user", "pencil", ""))
	c.nonce, c.first = "rOprNGfwEbeRWgbNEkqO", "n=user,r=rOprNGfwEbeRWgbNEkqO"
	first, err := c.Step("")
	require.NoError(t, err)
	require.Equal(t, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO", first)
	final, err := c.Step("r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
	require.NoError(t, err)
	require.Equal(t, "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", final)
	_, err = c.Step("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
	require.NoError(t, err)
	require.True(t, c.Done())

	c.step = 2
	_, err = c.Step("v=AAAA")
	require.Error(t, err, "the broker has to prove itself too")
}
