package processors

import "github.com/IBM/sarama"

func (p *Processor) saramaSecurity(c *sarama.Config) {
	s := p.cfg.Security
	if s.TLS != nil {
		c.Net.TLS.Enable, c.Net.TLS.Config = true, s.TLS
	}
	if s.Mechanism != "" {
		c.Net.SASL.Enable = true
		c.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
		c.Net.SASL.User, c.Net.SASL.Password = s.User, s.Password
	}
}
