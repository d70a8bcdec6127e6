package processors

import "github.com/IBM/sarama"

func (p *Processor) saramaSecurity(c *sarama.Config) { p.cfg.Security.apply(c) }

// apply is kgoOptions for sarama.
func (s Security) apply(c *sarama.Config) {
	if s.TLS != nil {
		c.Net.TLS.Enable, c.Net.TLS.Config = true, s.TLS
	}
	if s.Mechanism == "" {
		return
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
	c.Net.SASL.User, c.Net.SASL.Password = s.User, s.Password
	c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return newScram(s.Mechanism) }
}
