package fake

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// Address is how a member is reached.
type Address struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Endpoint string `json:"endpoint"`
}

// Arrival is when an object was applied in the first and in the last member.
type Arrival struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Fleet is members that listen, each on a port of its own. Use Serve.
type Fleet struct {
	// CA is what all of them show themselves with, in PEM.
	CA []byte
	// Token is what all of them want to be shown.
	Token string
	// Members are in no order.
	Members []Address

	members []*Member // as Members
	servers []*http.Server

	mu       sync.Mutex
	arrivals map[string]*arrivals // by namespace/name
}

type arrivals struct {
	at   map[string]time.Time // by member
	all  chan struct{}        // closed when every member has it
	want int
}

// Serve starts n members on loopback.
func Serve(ctx context.Context, n int) (*Fleet, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	ca, key, err := cert.GenerateSelfSignedCertKey(loopback.String(), []net.IP{loopback}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(ca, key)
	if err != nil {
		return nil, fmt.Errorf("use the certificate: %w", err)
	}
	f := &Fleet{CA: ca, Token: rand.Text(), arrivals: map[string]*arrivals{}}
	for i := range n {
		if err := f.serve(ctx, fmt.Sprintf("fake-%03d", i), n, pair); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (f *Fleet) serve(ctx context.Context, name string, all int, pair tls.Certificate) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	member := New(f.Token, func(namespace, object string, at time.Time) {
		f.arrived(name, namespace+"/"+object, all, at)
	})
	server := &http.Server{
		Handler: member, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	f.members, f.servers = append(f.members, member), append(f.servers, server)
	f.Members = append(f.Members, Address{Name: name, ID: member.ID(), Endpoint: "https://" + listener.Addr().String()})
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with Close
	return nil
}

// Close ends all members.
func (f *Fleet) Close() error {
	var all error
	for _, s := range f.servers {
		all = errors.Join(all, s.Close())
	}
	return all
}

func (f *Fleet) arrived(member, object string, all int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.of(object, all)
	if _, known := a.at[member]; known {
		return
	}
	a.at[member] = at
	if len(a.at) == a.want {
		close(a.all)
	}
}

func (f *Fleet) of(object string, all int) *arrivals {
	a, ok := f.arrivals[object]
	if !ok {
		a = &arrivals{at: map[string]time.Time{}, all: make(chan struct{}), want: all}
		f.arrivals[object] = a
	}
	return a
}

// Arrived waits until namespace/name was applied in every member, and says
// when. It errs, with the number of those that have it, when ctx ends first.
func (f *Fleet) Arrived(ctx context.Context, object string) (Arrival, error) {
	f.mu.Lock()
	a := f.of(object, len(f.Members))
	f.mu.Unlock()
	select {
	case <-a.all:
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		return Arrival{}, fmt.Errorf("%s is in %d of %d members: %w", object, len(a.at), a.want, ctx.Err())
	}
	out := Arrival{}
	for _, at := range a.at {
		if out.First.IsZero() || at.Before(out.First) {
			out.First = at
		}
		if at.After(out.Last) {
			out.Last = at
		}
	}
	return out, nil
}
