package members_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// estate is a member that has nothing but the namespace kube-system.
type memberCluster struct {
	mu       sync.Mutex
	claim    string
	released string // by whom, where it has no claim
	requests []string
	refuses  int    // status of answers to writes; 0: they go through
	races    int    // how many writes somebody else is quicker than
	lease    string // of an agent that acts there, as JSON; empty: there is none
}

func (e *memberCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, r.Method)
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
	}
	if strings.Contains(r.URL.Path, "/leases/") {
		if e.lease == "" {
			fail(http.StatusNotFound, "NotFound")
			return
		}
		_, _ = fmt.Fprint(w, e.lease)
		return
	}
	if r.Method == http.MethodPatch {
		switch {
		case e.refuses != 0:
			fail(e.refuses, "Forbidden")
			return
		case e.races > 0:
			e.races--
			fail(http.StatusConflict, "Conflict")
			return
		}
		body, _ := io.ReadAll(r.Body)
		var patch struct {
			Metadata struct {
				Annotations map[string]*string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(body, &patch); err != nil {
			fail(http.StatusBadRequest, "BadRequest")
			return
		}
		e.claim = ""
		if text := patch.Metadata.Annotations[clusterv1alpha1.ClaimAnnotation]; text != nil {
			e.claim = *text
		}
		e.released = ""
		if text := patch.Metadata.Annotations[clusterv1alpha1.ReleasedAnnotation]; text != nil {
			e.released = *text
		}
	}
	annotations, _ := json.Marshal(map[string]string{clusterv1alpha1.ClaimAnnotation: e.claim, clusterv1alpha1.ReleasedAnnotation: e.released})
	_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u","resourceVersion":"7","annotations":%s}}`, annotations)
}

func (e *memberCluster) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.requests
	e.requests = nil
	return out
}

func TestTheClaimOfAMember(t *testing.T) {
	for name, tc := range map[string]struct {
		memberCluster *memberCluster
		err           string // part of it; empty: the member may be written to
		claim         string // in the member, afterwards
		standing      hubclaim.Standing
		fault         string   // part of it
		asked         []string // by the first look
	}{
		"nobody has it": {
			&memberCluster{}, "", `{"hub":"one","cluster":"east"}`, hubclaim.Standing{Hub: "one"}, "", []string{"GET", "PATCH"},
		},
		"somebody writes at the same time": {
			&memberCluster{races: 1}, "", `{"hub":"one","cluster":"east"}`, hubclaim.Standing{Hub: "one"}, "", []string{"GET", "PATCH", "GET", "PATCH"},
		},
		"it is this hub's": {
			&memberCluster{claim: `{"hub":"one","cluster":"east"}`}, "", `{"hub":"one","cluster":"east"}`, hubclaim.Standing{Hub: "one"}, "", []string{"GET"},
		},
		"it was another hub's": {
			&memberCluster{claim: `{"hub":"one","cluster":"east","former":["two"]}`}, "", `{"hub":"one","cluster":"east","former":["two"]}`,
			hubclaim.Standing{Hub: "one", Contested: true}, "", []string{"GET"},
		},
		"it is another hub's": {
			&memberCluster{claim: `{"hub":"two","cluster":"west","address":"https://two"}`}, "cluster west of the control plane at https://two",
			`{"hub":"two","cluster":"west","address":"https://two"}`, hubclaim.Standing{}, "", []string{"GET"},
		},
		"what it carries is no claim": {
			&memberCluster{claim: `mine`}, "remove it there", `mine`, hubclaim.Standing{}, "", []string{"GET"},
		},
		"it does not let itself be claimed": {
			&memberCluster{refuses: http.StatusForbidden}, "", "", hubclaim.Standing{Hub: "one"}, "no", []string{"GET", "PATCH"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.memberCluster)
			defer server.Close()
			r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
			m, err := r.Connect(members.Target{
				Name: "east", ID: "u", Config: &rest.Config{Host: server.URL},
				Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east"} },
			})
			if err != nil {
				t.Fatal(err)
			}
			err = m.Prove(t.Context())
			if refused := errors.Is(err, members.ErrClaimed); refused != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) || m.Proven() == refused {
				t.Errorf("Prove = %v, proven = %v", err, m.Proven())
			}
			if diff := cmp.Diff(tc.asked, tc.memberCluster.asked()); diff != "" {
				t.Errorf("the first look asks (-want +got):\n%s", diff)
			}
			if tc.memberCluster.claim != tc.claim || m.Standing() != tc.standing || !strings.Contains(m.Unclaimed(), tc.fault) || (tc.fault == "") != (m.Unclaimed() == "") {
				t.Errorf("claim %s, standing %v, fault %q", tc.memberCluster.claim, m.Standing(), m.Unclaimed())
			}
			_ = m.Prove(t.Context())
			if diff := cmp.Diff([]string{"GET"}, tc.memberCluster.asked()); diff != "" {
				t.Errorf("the next look asks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMemberThatAnAgentHasLeft: what an agent has kept, or a copy of that, is put back in
// no cluster that was taken out of the fleet; a hub that is there may take it in again.
func TestAMemberThatAnAgentHasLeft(t *testing.T) {
	memberCluster := &memberCluster{}
	server := httptest.NewServer(memberCluster)
	defer server.Close()
	way := &yields{}
	agent := func(hub string, alone bool) *members.Member {
		t.Helper()
		r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
		m, err := r.Connect(members.Target{
			Name: "east", ID: "u", Config: &rest.Config{Host: server.URL}, Marks: way,
			Claimant: func() hubclaim.Claimant {
				return hubclaim.Claimant{Hub: hub, Cluster: "east", Mode: hubclaim.Pull, Alone: alone}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := agent("one", false)
	if err := first.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	const left = `{"hub":"one","cluster":"","mode":"Pull"}`
	if memberCluster.claim != "" || memberCluster.released != left {
		t.Fatalf("the claim is %q, and was let go of with %q", memberCluster.claim, memberCluster.released)
	}
	for _, step := range []struct {
		name  string
		agent *members.Member
		want  error
		claim string
	}{
		{"a copy of the agent, whose hub refuses it", agent("one", true), members.ErrLeft, ""},
		{"an agent of another hub, which is away", agent("two", true), nil, `{"hub":"two","cluster":"east","mode":"Pull"}`},
		{"the copy, once another hub has it", agent("one", true), members.ErrClaimed, `{"hub":"two","cluster":"east","mode":"Pull"}`},
	} {
		before := way.times
		if err := step.agent.Prove(t.Context()); !errors.Is(err, step.want) || step.agent.Proven() != (step.want == nil) {
			t.Errorf("%s: %v, want %v; proven: %t", step.name, err, step.want, step.agent.Proven())
		}
		if gave := way.times > before; gave != (step.want != nil) {
			t.Errorf("%s: gives way to who registers anew: %t", step.name, gave)
		}
		if memberCluster.claim != step.claim {
			t.Errorf("%s: the claim is %s", step.name, memberCluster.claim)
		}
	}
	memberCluster.claim, memberCluster.released = "", left
	anew := agent("one", false)
	if err := anew.Prove(t.Context()); err != nil || memberCluster.released != left {
		t.Errorf("an agent that is registered anew: %v, let go of by %q", err, memberCluster.released)
	}
	if err := agent("one", true).Prove(t.Context()); !errors.Is(err, members.ErrLeft) {
		t.Errorf("a copy of the agent, while the claim does not tell the two apart: %v", err)
	}
	way.next = &hubclaim.Mark{Run: 1, ID: "r", Revision: 7}
	if err := anew.Prove(t.Context()); err != nil || memberCluster.released != "" || !strings.Contains(memberCluster.claim, `"mark"`) {
		t.Errorf("its first mark: %v, let go of by %q, the claim is %s", err, memberCluster.released, memberCluster.claim)
	}
}

// A member is lost to another hub while it is in use, and let go of.
func TestTheClaimOfAMemberIsLost(t *testing.T) {
	e := &memberCluster{}
	server := httptest.NewServer(e)
	defer server.Close()
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	m, err := r.Connect(members.Target{
		Name: "east", ID: "u", Config: &rest.Config{Host: server.URL},
		Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	e.claim = `{"hub":"two","cluster":"east"}`
	e.mu.Unlock()
	if err := m.Release(t.Context()); err != nil || e.claim == "" {
		t.Errorf("Release took off another hub's claim: %v", err)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrClaimed) {
		t.Errorf("Prove = %v", err)
	}
	if _, ok := r.Get("east"); ok {
		t.Error("a member that was lost is written to")
	}
	e.mu.Lock()
	e.claim = `{"hub":"one","cluster":"east"}`
	e.mu.Unlock()
	if err := m.Release(t.Context()); err != nil || e.claim != "" {
		t.Errorf("Release = %v, the claim is %q", err, e.claim)
	}
	if err := m.Prove(t.Context()); err != nil || e.claim != "" {
		t.Errorf("a member that was let go of is claimed again: %v, %q", err, e.claim)
	}
}

// yields is a Marker who gives way.
type yields struct {
	times int
	next  *hubclaim.Mark
}

func (*yields) Weigh(context.Context, string, *hubclaim.Mark) error { return nil }
func (y *yields) Next(context.Context, string, *hubclaim.Mark) (*hubclaim.Mark, error) {
	return y.next, nil
}
func (y *yields) Yield() { y.times++ }

// TestAHubAndAnAgentOfOneMember: a hub that pushes to a member where an agent was left
// behind says so there, and waits until that lets go; the agent gives way.
func TestAHubAndAnAgentOfOneMember(t *testing.T) {
	lease := func(version int, holder string) string {
		return fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"flotilla-agent","resourceVersion":"%d"},"spec":{"holderIdentity":%q,"leaseDurationSeconds":40}}`, version, holder)
	}
	e := &memberCluster{claim: `{"hub":"one","cluster":"east","mode":"Pull"}`, lease: lease(1, "left-behind")}
	server := httptest.NewServer(e)
	defer server.Close()
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	connect := func(mode string, marks members.Marker) *members.Member {
		m, err := start(t, members.New(members.Options{Interpreter: interpreter.Native(), Clock: now}), &log{}).Connect(members.Target{
			Name: "east", ID: "u", Config: &rest.Config{Host: server.URL}, Marks: marks,
			Claimant: func() hubclaim.Claimant { return hubclaim.Claimant{Hub: "one", Cluster: "east", Mode: mode} },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	way := &yields{}
	hub, agent := connect(hubclaim.Push, nil), connect(hubclaim.Pull, way)
	if err := agent.Prove(t.Context()); err != nil || way.times != 0 {
		t.Fatalf("the agent that the member has: %v, gives way %d times", err, way.times)
	}
	waits := func(what string) {
		t.Helper()
		if err := hub.Prove(t.Context()); !errors.Is(err, members.ErrAgent) || !strings.Contains(err.Error(), "left-behind") || hub.Proven() {
			t.Errorf("%s: Prove = %v, proven = %t", what, err, hub.Proven())
		}
	}
	waits("an agent acts")
	if e.claim != `{"hub":"one","cluster":"east","mode":"Push"}` {
		t.Errorf("the member carries %s", e.claim)
	}
	if err := agent.Prove(t.Context()); !errors.Is(err, members.ErrPushed) || way.times != 1 || agent.Proven() {
		t.Errorf("the agent: Prove = %v, gives way %d times, proven = %t", err, way.times, agent.Proven())
	}
	now.Step(39 * time.Second)
	waits("an agent that may act yet")
	e.lease = lease(2, "left-behind")
	waits("an agent that goes on")
	now.Step(39 * time.Second)
	waits("an agent that may act yet")
	now.Step(time.Second)
	if err := hub.Prove(t.Context()); err != nil || !hub.Proven() {
		t.Errorf("a silent agent: Prove = %v", err)
	}
	e.asked()
	if err := hub.Prove(t.Context()); err != nil || cmp.Diff([]string{"GET"}, e.asked()) != "" {
		t.Errorf("the next look asks for more than the claim: %v", err)
	}

	e.lease = lease(3, "left-behind")
	hub = connect(hubclaim.Push, nil)
	waits("another connection")
	e.lease = lease(4, "")
	if err := hub.Prove(t.Context()); err != nil {
		t.Errorf("an agent that let go: Prove = %v", err)
	}
}
