package members_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// closet is a member that has ConfigMaps, whose watches show nothing.
type closet struct {
	mu      sync.Mutex
	version string // of its namespace kube-system
	mark    int64  // in the claim that it carries; 0: it carries none
	list    string // its ConfigMaps
	lists   int    // how often they were read
	away    bool   // it refuses to show them
	end     chan struct{}
	anew    func() // told that one who has seen nothing asks while it is away
}

func (c *closet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/api/v1":
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		claim := hubclaim.Claim{Hub: "h", Cluster: "edge"}
		if c.mark > 0 {
			claim.Mark = &hubclaim.Mark{Run: 2, ID: "b", Revision: c.mark}
		}
		_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours","resourceVersion":%q,"annotations":{%q:%q}}}`,
			c.version, clusterv1alpha1.ClaimAnnotation, claim.Encode())
	case r.URL.Path != "/api/v1/configmaps":
		fail(http.StatusNotFound, "NotFound")
	case c.away:
		if query.Get("watch") != "true" && query.Get("resourceVersion") == "0" {
			c.anew()
		}
		fail(http.StatusServiceUnavailable, "ServiceUnavailable")
	case query.Get("sendInitialEvents") == "true":
		fail(http.StatusUnprocessableEntity, "Invalid")
	case query.Get("watch") != "true":
		c.lists++
		_, _ = fmt.Fprint(w, c.list)
	default:
		w.(http.Flusher).Flush()
		over := c.end
		c.mu.Unlock()
		select {
		case <-over:
		case <-r.Context().Done():
		}
		c.mu.Lock()
	}
}

// set changes the member.
func (c *closet) set(change func(c *closet)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// newCloset starts a member with two ConfigMaps.
func newCloset(t *testing.T) (*closet, *httptest.Server) {
	t.Helper()
	c := &closet{version: "90", mark: 70, list: listText("100", configMapText("one", "40", ""), configMapText("two", "50", "")), end: make(chan struct{})}
	return c, serve(t, true, c)
}

// proved connects to a member that proves itself.
func proved(t *testing.T, r *members.Registry, server *httptest.Server) *members.Member {
	t.Helper()
	cluster, secret := (&edge{server: server}).registered("first")
	m := connectTo(t, r, cluster, secret)
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// becomes waits until something is known of the ConfigMap two.
func becomes(t *testing.T, m *members.Member, want members.Presence) {
	t.Helper()
	eventually(t, "what is known of the member is true", func() error {
		if _, presence := m.Read(configMap, types.NamespacedName{Namespace: "shop", Name: "two"}); presence != want {
			return fmt.Errorf("presence %v, want %v", presence, want)
		}
		return nil
	})
}

// TestAMemberThatWasSetBackUnseen: a hub that stood still while its member was set back,
// and had grown past what its watches had seen, finds it with the next look.
func TestAMemberThatWasSetBackUnseen(t *testing.T) {
	for name, back := range map[string]func(c *closet){
		"its versions have gone back":        func(c *closet) { c.version = "80" },
		"they have grown past what was seen": func(c *closet) { c.version, c.mark = "190", 60 },
		"it has no mark any more":            func(c *closet) { c.version, c.mark = "190", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c, server := newCloset(t)
			m := proved(t, start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{}), server)
			becomes(t, m, members.Present)
			c.set(func(c *closet) { back(c); c.list = listText("200", configMapText("one", "40", "")) })
			for range 2 {
				if err := m.Prove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			becomes(t, m, members.Absent)
			c.set(func(c *closet) {
				if c.lists != 2 {
					t.Errorf("the kind was listed %d times, want 2", c.lists)
				}
			})
		})
	}
}

// TestWhatGoesWhileAMemberIsAway: an object that somebody removes from a member that is
// cut off is reported when the watch begins anew, which never had it.
func TestWhatGoesWhileAMemberIsAway(t *testing.T) {
	c, server := newCloset(t)
	anew := make(chan struct{})
	c.anew = sync.OnceFunc(func() { close(anew) })
	reported := &log{}
	m := proved(t, start(t, members.New(members.Options{Interpreter: interpreter.Native()}), reported), server)
	becomes(t, m, members.Present)
	eventually(t, "what it has is told", func() error { // it is told a moment after it is known
		if reported.count("changed two") == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	c.set(func(c *closet) {
		c.away, c.list = true, listText("120", configMapText("one", "40", ""))
		close(c.end)
	})
	becomes(t, m, members.Unknown)
	m.Doubt()
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-anew
	before := reported.count("changed two")
	c.set(func(c *closet) { c.away, c.end = false, make(chan struct{}) })
	becomes(t, m, members.Absent)
	eventually(t, "what is gone is told", func() error {
		if now := reported.count("changed two"); now != before+1 {
			return fmt.Errorf("it was told %d times, before that %d", now, before)
		}
		return nil
	})
}

// TestAMemberThatIsReachedElsewhere: nobody has to ask for an object for it to be seen
// where a member has another address now.
func TestAMemberThatIsReachedElsewhere(t *testing.T) {
	reported := &log{}
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), reported)
	_, first := newCloset(t)
	becomes(t, proved(t, r, first), members.Present)
	const one, two = 1, 1
	eventually(t, "what it has is told", func() error { // it is told a moment after it is known
		if o, w := reported.count("changed one"), reported.count("changed two"); o != one || w != two {
			return fmt.Errorf("told %d and %d times", o, w)
		}
		return nil
	})
	c, second := newCloset(t)
	c.set(func(c *closet) { c.list = listText("120", configMapText("one", "110", "")) })
	proved(t, r, second)
	eventually(t, "what has changed and what is gone is told", func() error {
		if o, g := reported.count("changed one"), reported.count("changed two"); o != one+1 || g != two+1 {
			return fmt.Errorf("told %d and %d times, before that %d and %d", o, g, one, two)
		}
		return nil
	})
}
