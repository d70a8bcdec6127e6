package notify

import (
	"fmt"
	"net/netip"
	"syscall"
)

// special are ranges that no public endpoint has, beside those that netip knows: this network, shared space of carriers,
// protocol assignments, documentation, benchmarks, reserved; and the ones that carry an IPv4 address inside.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
	"2001:db8::/32", "2002::/16", "fec0::/10", "::/96")

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// public says whether an address belongs to the public network.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// onlyPublic refuses to connect to an address that is not public. It sees the address that is dialled, after the name
// was resolved.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return never(fmt.Errorf("address %q: %w", address, err))
	}
	if !public(a.Addr()) {
		return never(fmt.Errorf("address %s is not public", a.Addr()))
	}
	return nil
}
