package localfleet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Link carries TCP connections to one address. It can be cut:
// neither side is notified, what is in flight is lost, and new connections find silence.
// Once it is mended, connections of before are dead.
type Link struct {
	dial     func() (net.Conn, error) // to its other end
	listener net.Listener
	carriers sync.WaitGroup

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// dialTimeout is how long a link tries to reach its other end.
const dialTimeout = 5 * time.Second

// NewLink returns a link from a free loopback port to an address, as host:port.
func NewLink(ctx context.Context, to string) (*Link, error) {
	return NewLinkBy(ctx, func() (net.Conn, error) { return net.DialTimeout("tcp", to, dialTimeout) })
}

// NewLinkBy returns a link from a free loopback port to wherever dial leads at the time.
func NewLinkBy(ctx context.Context, dial func() (net.Conn, error)) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a link: %w", err)
	}
	l := &Link{dial: dial, listener: listener, open: map[net.Conn]bool{}}
	l.carriers.Go(l.serve)
	return l, nil
}

// Address is where the link begins, as host:port.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut has the link carry nothing.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// Mend has the link carry new connections. Those of before end.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		l.cut = false
		l.drop()
	}
}

// Close ends the link and all that it carries.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	l.drop()
	l.open = nil
	l.mu.Unlock()
	l.carriers.Wait()
	return err
}

// drop ends all connections. The lock must be held.
func (l *Link) drop() {
	for conn := range l.open {
		_ = conn.Close()
	}
	clear(l.open)
}

func (l *Link) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // it was closed
		}
		if up := l.track(conn); up {
			l.carriers.Go(func() { l.carry(conn) })
		}
	}
}

// track remembers a connection until it is dropped, and reports whether it is to be
// carried.
func (l *Link) track(conn net.Conn) (up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		_ = conn.Close()
		return false
	}
	l.open[conn] = true
	return !l.cut
}

// carry takes a connection to the other end.
func (l *Link) carry(client net.Conn) {
	server, err := l.dial()
	if err != nil {
		l.end(client)
		return
	}
	if !l.track(server) {
		return // it was cut meanwhile
	}
	l.carriers.Go(func() { l.copy(server, client) })
	l.copy(client, server)
}

// copy carries one direction until either side ends, which ends both, or until
// the link is cut, which neither side sees.
func (l *Link) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if l.isCut() {
			return
		}
		if n > 0 {
			_, wrong := to.Write(buffer[:n])
			if err == nil {
				err = wrong
			}
		}
		if err != nil {
			l.end(to)
			l.end(from)
			return
		}
	}
}

func (l *Link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

func (l *Link) end(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	_ = conn.Close()
}
