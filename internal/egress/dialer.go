package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/flotilla-io/flotilla/internal/addresses"
)

// Dialer connects to hosts that tenants name. The zero value connects to public
// addresses of other machines only.
type Dialer struct {
	// Networks are where hosts may be besides. One within 127.0.0.0/8 or ::1/128 is
	// needed for loopback: a wider one does not include it. Link-local and reserved
	// addresses are never reached. See ParseNetworks.
	Networks []netip.Prefix
	// Own is what belongs to the control plane itself, as host:port; it is never
	// reached, whatever Networks say. On this machine each of the ports counts at
	// all addresses.
	Own []string
	// Proxies returns the proxy of an administrator by which a Transport goes to a URL, nil for none; a nil function means that
	// there are none. See Environment.
	Proxies func(*url.URL) (*url.URL, error)
	// Dial opens connections; nil means the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookupNetIP resolves names; nil means the system's resolver.
	LookupNetIP func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Machine returns the addresses of this machine; nil asks the system.
	Machine func() ([]netip.Addr, error)
}

// ErrNotAllowed is what every NotAllowedError is.
var ErrNotAllowed = errors.New("address not allowed")

// NotAllowedError says that a host is at an address to which connections of tenants may
// not lead. It is the same whether something listens there or not.
type NotAllowedError struct {
	// Host is what was named.
	Host string
	// Name says that Host is a name, of which no more is shown: neither where it leads
	// nor whether the name exists, since a tenant could learn by that which
	// hosts there are in the network of the control plane.
	Name bool
	// Kind is what an address is.
	Kind addresses.Kind
	// Own says that it is the control plane itself.
	Own bool

	absent bool // it is not known here
}

// Of returns the error about the same host under another name for it.
func (e *NotAllowedError) Of(host string) *NotAllowedError {
	named := *e
	named.Host = host
	return &named
}

// IsAbsent reports whether a host could not be judged because its name is not known here, or not in time. Behind a proxy there
// may be one.
func IsAbsent(err error) bool {
	var refused *NotAllowedError
	if errors.As(err, &refused) {
		return refused.absent
	}
	var unknown *net.DNSError
	return errors.As(err, &unknown) || errors.Is(err, context.DeadlineExceeded)
}

// Flag names the networks that are allowed; it is in messages.
const Flag = "--source-networks"

// allows is the call that allows networks.
const allows = "flotillad serve " + Flag

// Error names the host, what it leads to, and who can do something about it.
func (e *NotAllowedError) Error() string {
	switch {
	case e.Name:
		return fmt.Sprintf("%v: %s is not there, or leads to where no source may be (private, loopback and reserved addresses, the control plane itself); an administrator can allow networks with %s", ErrNotAllowed, e.Host, allows)
	case e.Own:
		return fmt.Sprintf("%v: %s leads to the control plane itself, where no source may be", ErrNotAllowed, e.Host)
	case e.Kind == addresses.Nobodys:
		return fmt.Sprintf("%v: %s leads to %s, where no source may be", ErrNotAllowed, e.Host, e.Kind)
	case e.Kind == addresses.Public: // of this machine
		return fmt.Sprintf("%v: %s leads to the control plane's own machine; an administrator can allow that with %s", ErrNotAllowed, e.Host, allows)
	case e.Kind == addresses.Loopback:
		return fmt.Sprintf("%v: %s leads to %s; an administrator can allow that with %s 127.0.0.0/8 (::1/128 for IPv6)", ErrNotAllowed, e.Host, e.Kind, allows)
	default:
		return fmt.Sprintf("%v: %s leads to %s; an administrator can allow that with %s", ErrNotAllowed, e.Host, e.Kind, allows)
	}
}

// Unwrap returns ErrNotAllowed.
func (e *NotAllowedError) Unwrap() error { return ErrNotAllowed }

// timeout is how long an address may take while the host has others.
const timeout = 5 * time.Second

// DialContext connects to a host, given as host:port. Errors: NotAllowedError,
// before anything is sent, also for a name that there is not; what the resolver or
// the network says.
func (d Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	at, err := d.Resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	return d.Connect(ctx, network, address, at)
}

// Resolve returns where a host is, given as host:port. It connects to nothing. If
// one of the addresses is not allowed, none is.
func (d Dialer) Resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is no port", service)
	}
	found, err := d.lookup(ctx, host)
	if isNone(err) || err == nil && len(found) == 0 {
		return nil, &NotAllowedError{Host: host, Name: true, absent: true}
	}
	if err != nil {
		return nil, err
	}
	machine, err := d.machine()
	if err != nil {
		return nil, fmt.Errorf("find out this machine's own addresses: %w", err)
	}
	out := make([]netip.AddrPort, 0, len(found))
	for _, addr := range found {
		at := netip.AddrPortFrom(addr.Unmap(), uint16(port))
		if fault := d.judge(ctx, at, machine); fault != nil {
			fault.Host, fault.Name = host, secret(host)
			return nil, fault
		}
		out = append(out, at)
	}
	return out, nil
}

// isNone reports whether a resolver knows that there is no such name.
func isNone(err error) bool {
	var fault *net.DNSError
	return errors.As(err, &fault) && fault.IsNotFound
}

// secret reports whether the address of a host must not be shown: it is a name, and
// not the one that every machine has for itself.
func secret(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && host != "localhost"
}

// Connect connects to one of the addresses of a host that Resolve has returned.
func (d Dialer) Connect(ctx context.Context, network, address string, at []netip.AddrPort) (net.Conn, error) {
	var faults []error
	for i, to := range at {
		conn, err := d.try(ctx, network, to.String(), i == len(at)-1)
		if err == nil {
			return conn, nil
		}
		faults = append(faults, Fault(err))
	}
	return nil, fmt.Errorf("connect to %s: %w", address, errors.Join(faults...))
}

func (d Dialer) try(ctx context.Context, network, address string, last bool) (net.Conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if d.Dial != nil {
		return d.Dial(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (d Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	lookup := d.LookupNetIP
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	found, err := lookup(ctx, "ip", host)
	var fault *net.DNSError
	if errors.As(err, &fault) {
		plain := *fault
		plain.Server = "" // the resolver's address is not shown
		err = &plain
	}
	return found, err
}

func (d Dialer) machine() ([]netip.Addr, error) {
	if d.Machine != nil {
		return d.Machine()
	}
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := make([]netip.Addr, 0, len(found))
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			out = append(out, prefix.Addr().Unmap())
		}
	}
	return out, nil
}

// judge says why an address is not allowed, or nil.
func (d Dialer) judge(ctx context.Context, at netip.AddrPort, machine []netip.Addr) *NotAllowedError {
	for _, face := range addresses.Faces(at.Addr()) {
		kind, here := addresses.KindOf(face), slices.Contains(machine, face)
		switch {
		case kind == addresses.Nobodys:
			return &NotAllowedError{Kind: kind}
		case kind == addresses.Public && !here:
		case !d.listed(face, kind):
			return &NotAllowedError{Kind: kind}
		}
		if d.own(ctx, netip.AddrPortFrom(face, at.Port()), here || kind == addresses.Loopback) {
			return &NotAllowedError{Kind: kind, Own: true}
		}
	}
	return nil
}

// listed reports whether an administrator has named a network that an address is in.
func (d Dialer) listed(addr netip.Addr, kind addresses.Kind) bool {
	return slices.ContainsFunc(d.Networks, func(network netip.Prefix) bool {
		return network.Contains(addr) && (kind != addresses.Loopback || withinLoopback(network))
	})
}

// own reports whether an address is one of the control plane's.
func (d Dialer) own(ctx context.Context, at netip.AddrPort, here bool) bool {
	return slices.ContainsFunc(d.Own, func(own string) bool {
		host, port, err := net.SplitHostPort(own)
		if err != nil || port != strconv.Itoa(int(at.Port())) {
			return false
		}
		if here || host == "" {
			return here
		}
		found, err := d.lookup(ctx, host)
		return err != nil || len(found) == 0 || slices.ContainsFunc(found, func(addr netip.Addr) bool { return addresses.Plain(addr) == at.Addr() })
	})
}
