package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	// provenFor is how long a proof holds, unless something casts doubt on it.
	provenFor = time.Minute
	// refutedFor is how long a member that is away, or is another cluster, is not asked
	// again.
	refutedFor = 2 * time.Second
	// proveTimeout bounds the questions for a proof.
	proveTimeout = 10 * time.Second
	// identityPath leads to a cluster's identity: the UID of an object
	// that nobody can delete and create again.
	identityPath = "/api/v1/namespaces/" + metav1.NamespaceSystem
	mostIdentity = 1 << 20
)

// errRefused says that a cluster does not show this caller its identity.
var errRefused = errors.New("the cluster does not say who it is")

// proof is what is known of the identity of the member that answers.
type proof struct {
	doubted atomic.Bool // a request has failed since

	mu     sync.Mutex
	until  time.Time     // when the result expires
	err    error         // why no request is sent there
	asking chan struct{} // closed when the question in flight is answered; nil for none
}

// doubt makes the next request check the identity again.
func (l *link) doubt() { l.proof.doubted.Store(true) }

// prove checks that the server is the cluster that was registered, before a
// user's request is sent there. The identity is asked for without credentials first,
// then with the impersonator's token, and last, where the certificate shows that
// it is the cluster's own server, with the token that the hub itself acts with.
// It is asked once for all requests; each waits for the answer, good or bad, as
// long as its context lasts. A cluster that was registered without an id has no identity to
// compare: it is known by its certificate, under the CA that it was registered with.
func (l *link) prove(ctx context.Context, now clock.PassiveClock, creds credentials) error {
	if l.id == "" && l.pinned {
		return nil // every connection proves it
	}
	if l.id == "" {
		return unavailable(l.cluster, "it has no spec.id and its certificate is not checked by a CA of its own, so nothing shows who answers there: "+
			"set spec.id to the UID of its namespace %s, or give its secret a %s", metav1.NamespaceSystem, clusterv1alpha1.SecretCADataKey)
	}
	answered, err := l.question(ctx, now, creds)
	if answered == nil {
		return err
	}
	select {
	case <-answered:
		l.proof.mu.Lock()
		defer l.proof.mu.Unlock()
		return l.proof.err
	case <-ctx.Done():
		return explain(l.cluster, ctx.Err())
	}
}

// question returns the known result or, where that has expired, a channel that is closed
// once there is a new one.
func (l *link) question(ctx context.Context, now clock.PassiveClock, creds credentials) (answered <-chan struct{}, err error) {
	p := &l.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking != nil {
		return p.asking, nil
	}
	if holds := now.Now().Before(p.until); holds && (p.err != nil || !p.doubted.Load()) {
		return nil, p.err
	}
	p.doubted.Store(false)
	p.asking = make(chan struct{})
	go l.answer(context.WithoutCancel(ctx), now, creds)
	return p.asking, nil
}

// answer records the result of the question in flight.
func (l *link) answer(ctx context.Context, now clock.PassiveClock, creds credentials) {
	ctx, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	err := l.verify(ctx, creds)
	p := &l.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.until = err, now.Now().Add(provenFor)
	if err != nil {
		p.until = now.Now().Add(refutedFor)
	}
	close(p.asking)
	p.asking = nil
}

func (l *link) verify(ctx context.Context, creds credentials) error {
	tokens := []string{"", creds.impersonator}
	if l.secured && creds.own != "" {
		tokens = append(tokens, creds.own)
	}
	id, err := l.identity(ctx, tokens)
	switch {
	case errors.Is(err, errRefused):
		return badGateway(l.cluster, "it does not say who it is, so no request goes there: its tokens may be outdated, or it is another cluster by now")
	case err != nil:
		return explain(l.cluster, err)
	case id != l.id:
		return badGateway(l.cluster, "another cluster answers at its address: it was registered as %s and answers as %s; unjoin it and join the one that is there", l.id, id)
	}
	return nil
}

// identity asks with one token after the other, until one is allowed to read the identity.
func (l *link) identity(ctx context.Context, tokens []string) (string, error) {
	for _, token := range tokens {
		id, err := l.ask(ctx, token)
		if !errors.Is(err, errRefused) {
			return id, err
		}
	}
	return "", errRefused
}

func (l *link) ask(ctx context.Context, token string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base.JoinPath(identityPath).String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := l.plain.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", errRefused
	default:
		return "", badGateway(l.cluster, "asked who it is, it answers with code %d", resp.StatusCode)
	}
	var system metav1.PartialObjectMetadata
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostIdentity)).Decode(&system); err != nil || system.UID == "" {
		return "", badGateway(l.cluster, "asked who it is, it does not answer with an object")
	}
	return string(system.UID), nil
}
