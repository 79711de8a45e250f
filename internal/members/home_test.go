package members_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// TestACopyOfAHubBesideIt: two hubs of one identity and one member. Whoever acts there
// goes on, and who comes from a copy waits until nobody answers.
func TestACopyOfAHubBesideIt(t *testing.T) {
	e := &memberCluster{}
	server := httptest.NewServer(e)
	defer server.Close()
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	connect := func(place string) *members.Member {
		m, err := start(t, members.New(members.Options{Interpreter: interpreter.Native(), Clock: now}), &log{}).Connect(members.Target{
			Name: "east", ID: "u", Config: &rest.Config{Host: server.URL},
			Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east", Place: place} },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	hub, copied := connect("here"), connect("there")
	check := func(what string, m *members.Member, want error, asked ...string) {
		t.Helper()
		e.asked()
		if err := m.Prove(t.Context()); !errors.Is(err, want) || m.Proven() != (want == nil) {
			t.Errorf("%s: Prove = %v, proven %t; want %v", what, err, m.Proven(), want)
		}
		if diff := cmp.Diff(asked, e.asked()); diff != "" {
			t.Errorf("%s asks (-want +got):\n%s", what, diff)
		}
		now.Step(10 * time.Second)
	}
	check("the hub, for the first time", hub, nil, "GET", "PATCH")
	check("the hub", hub, nil, "GET")
	check("a copy", copied, members.ErrMoving, "GET", "PATCH")
	check("a copy that waits", copied, members.ErrMoving, "GET")
	check("the hub answers", hub, nil, "GET", "PATCH")
	if got := hub.Refused(); got != "there" {
		t.Errorf("the hub refused %q", got)
	}
	check("a copy that was refused", copied, members.ErrElsewhere, "GET")
	check("the hub goes on", hub, nil, "GET")
	if err := connect("there").Release(t.Context()); err != nil || !strings.Contains(e.claim, `"at":"here"`) {
		t.Errorf("the copy takes the hub's claim off: %v, %s", err, e.claim)
	}

	// The hub is gone. Its copy asks again some time later, and has it.
	now.Step(5 * time.Minute)
	check("a copy that asks again", copied, members.ErrMoving, "GET", "PATCH")
	check("after 10 s", copied, members.ErrMoving, "GET")
	check("after 20 s", copied, members.ErrMoving, "GET")
	check("after 30 s", copied, nil, "GET", "PATCH")
	check("from then on", copied, nil, "GET")
	check("the hub that comes back", hub, members.ErrMoving, "GET", "PATCH")
	check("the copy answers", copied, nil, "GET", "PATCH")
	check("the hub that was refused", hub, members.ErrElsewhere, "GET")

	// The copy lets the member go. Nobody takes it but who asks for it, and the copy.
	if err := connect("there").Release(t.Context()); err != nil || e.claim != "" || !strings.Contains(e.released, `"at":"there"`) {
		t.Errorf("release: %v, claim %q, released %s", err, e.claim, e.released)
	}
	check("the hub, once the copy has let go", hub, members.ErrLetGo, "GET")
	check("the hub, started anew", connect("here"), members.ErrLetGo, "GET")
	check("who let go, and has the cluster again", connect("there"), nil, "GET", "PATCH")
	if e.released != "" {
		t.Errorf("a member that is taken on is still said to be let go of: %s", e.released)
	}

	// Somebody removes the claim: that does not make the member nobody's.
	e.claim = ""
	check("the hub, without a claim there", hub, members.ErrMoving, "GET", "PATCH")

	// One that does not know where it is, is kept apart from none.
	check("loops that run apart", connect(""), nil, "GET")
}

// TestACopyThatCannotBeRefused: a hub that cannot say no writes nothing more, tries with
// each look, and goes on once it has; a copy that cannot say that it acts does not.
func TestACopyThatCannotBeRefused(t *testing.T) {
	e := &memberCluster{claim: `{"hub":"one","cluster":"east","home":{"at":"here","asks":"there"}}`, refuses: http.StatusForbidden}
	server := httptest.NewServer(e)
	defer server.Close()
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	connect := func(place string) *members.Member {
		m, err := start(t, members.New(members.Options{Interpreter: interpreter.Native(), Clock: now}), &log{}).Connect(members.Target{
			Name: "east", ID: "u", Config: &rest.Config{Host: server.URL},
			Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east", Place: place} },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	hub, copied := connect("here"), connect("there")
	for range 5 {
		for m, want := range map[*members.Member]error{hub: members.ErrContested, copied: members.ErrMoving} {
			if err := m.Prove(t.Context()); !errors.Is(err, want) || m.Proven() {
				t.Fatalf("Prove = %v, proven %t; want %v", err, m.Proven(), want)
			}
		}
		now.Step(10 * time.Second)
	}
	e.refuses = 0
	if err := hub.Prove(t.Context()); err != nil || !hub.Proven() || !strings.Contains(e.claim, `"refused":["there"]`) {
		t.Errorf("the hub, once it may write: Prove = %v, claim %s", err, e.claim)
	}
	if err := copied.Prove(t.Context()); err == nil {
		t.Error("both act")
	}
}

// weighs is a Marker who notes what was weighed.
type weighs struct{ marks []hubclaim.Mark }

func (w *weighs) Weigh(_ context.Context, _ string, mark *hubclaim.Mark) error {
	w.marks = append(w.marks, *mark)
	return nil
}

func (*weighs) Next(context.Context, string, *hubclaim.Mark) (*hubclaim.Mark, error) {
	return nil, nil //nolint:nilnil // it marks nothing
}

// TestAHubThatHasMovedIsWeighedFirst: a backup that is put back in another folder is found
// to be older before it may act.
func TestAHubThatHasMovedIsWeighedFirst(t *testing.T) {
	e := &memberCluster{claim: `{"hub":"one","cluster":"east","mark":{"run":1,"id":"x","revision":7},"home":{"at":"here"}}`}
	server := httptest.NewServer(e)
	defer server.Close()
	marks := &weighs{}
	m, err := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{}).Connect(members.Target{
		Name: "east", ID: "u", Config: &rest.Config{Host: server.URL}, Marks: marks,
		Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east", Place: "there"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrMoving) {
		t.Errorf("Prove = %v", err)
	}
	if diff := cmp.Diff([]hubclaim.Mark{{Run: 1, ID: "x", Revision: 7}}, marks.marks); diff != "" {
		t.Errorf("weighed (-want +got):\n%s", diff)
	}
}

// TestAMemberThatCannotBeAsked: one that takes no writes any more has nothing written there
// by a hub that has moved.
func TestAMemberThatCannotBeAsked(t *testing.T) {
	e := &memberCluster{claim: `{"hub":"one","cluster":"east","home":{"at":"here"}}`, refuses: http.StatusForbidden}
	server := httptest.NewServer(e)
	defer server.Close()
	m, err := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{}).Connect(members.Target{
		Name: "east", ID: "u", Config: &rest.Config{Host: server.URL},
		Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east", Place: "there"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrMoving) || !strings.Contains(err.Error(), "cannot be asked") || m.Proven() {
		t.Errorf("Prove = %v, proven %t", err, m.Proven())
	}
}
