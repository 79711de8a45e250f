package hubconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrOtherHub says that what answers is not the hub that was there before.
	ErrOtherHub = errors.New("another hub answers")
	// ErrRefused says that the hub does not take the program's credentials.
	ErrRefused = errors.New("the hub refuses the credentials")
)

// mostIdentity is how many bytes of an answer to a probe are read at most.
const mostIdentity = 1 << 20

// probe asks the hub for its identity. Nil means that it is there, is the same hub as
// before, and is trusted.
func (c *Connection) probe(ctx context.Context) error {
	system, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if err := c.recognise(string(system.UID)); err != nil {
		return err
	}
	if system.UID == "" || c.options.Meet == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	return c.options.Meet(ctx, system)
}

// recognise compares the identity of a hub, empty for none, with that of the one that
// was there before.
func (c *Connection) recognise(identity string) error {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	switch {
	case known == identity || identity == "" && known == "":
		return nil
	case known != "":
		return fmt.Errorf("%w at %s: its kube-system namespace has the UID %s, and it was %s before", ErrOtherHub, c.options.Server, identity, known)
	}
	if err := c.options.Learned(identity); err != nil {
		return fmt.Errorf("keep the identity of the hub: %w", err)
	}
	c.mu.Lock()
	c.known = identity
	c.mu.Unlock()
	return nil
}

// ask returns the hub's namespace kube-system, whose UID is its identity; an empty object
// if the hub has never shown it.
func (c *Connection) ask(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	url := strings.TrimSuffix(c.options.Server, "/") + "/api/v1/namespaces/" + metav1.NamespaceSystem
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the hub is no URL: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	answer, err := c.options.Probe.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	c.compareClocks(answer)
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostIdentity))
	if err != nil {
		return nil, fmt.Errorf("read who the hub is: %w", err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, ErrRefused
	case http.StatusForbidden:
		if c.Identity() == "" {
			return &metav1.PartialObjectMetadata{}, nil // one that shows its identity to nobody
		}
		return nil, fmt.Errorf("%w: it does not say who it is any more", ErrRefused)
	default:
		return nil, fmt.Errorf("it answers %q when asked for its kube-system namespace", answer.Status)
	}
	system := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, system); err != nil || system.UID == "" {
		return nil, errors.New("what answers is no Kubernetes API: it has no kube-system namespace")
	}
	return system, nil
}

// compareClocks records how far the hub's clock is ahead.
func (c *Connection) compareClocks(answer *http.Response) {
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return
	}
	skew := theirs.Sub(c.options.Clock.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = skew.Round(time.Second)
}
