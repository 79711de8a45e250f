package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// TestAnswers: a cluster is there if it was heard of a moment ago, whatever its Cluster
// says; otherwise somebody looks.
func TestAnswers(t *testing.T) {
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"u","resourceVersion":"7"}}`)
	}))
	defer server.Close()
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	registry := members.New(members.Options{Interpreter: interpreter.Native(), Clock: now})
	go func() { _ = registry.Start(t.Context()) }()
	member, err := registry.Connect(members.Target{Name: "east", ID: "u", Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	presence := Presence{registry, newHeartbeats(now)}
	acquired, silent := now.Now(), ""
	renew := func() {
		presence.heartbeats.renewed(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "edge", Annotations: map[string]string{clusterv1alpha1.SilentAnnotation: silent}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Now()}, AcquireTime: &metav1.MicroTime{Time: acquired}, LeaseDurationSeconds: ptr.To[int32](40)},
		})
	}
	presence.heartbeats.renewed(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "mute"}}) // says nothing at all
	steps := []struct {
		name, cluster string
		do            func()
		yes           bool
		back          bool // as of now
		now           bool // that is asked since now, and not since a minute ago
		again         time.Duration
		probes        bool // somebody is to look
	}{
		{name: "a member that was never looked at", cluster: "east", again: later},
		{name: "one that has answered", cluster: "east", do: func() { _ = member.Prove(t.Context()) }, yes: true, back: true},
		{name: "a moment later", cluster: "east", do: func() { now.Step(present) }, yes: true},
		{name: "somebody who asks then", cluster: "east", now: true, again: askAgain, probes: true},
		{name: "some time later", cluster: "east", do: func() { now.Step(time.Millisecond) }, again: askAgain, probes: true},
		{name: "once it was looked at", cluster: "east", do: func() { _ = member.Prove(t.Context()) }, yes: true},
		{name: "one that refuses", cluster: "east", do: func() { down.Store(true); _ = member.Prove(t.Context()) }, again: later},
		{name: "one that is back", cluster: "east", do: func() { down.Store(false); _ = member.Prove(t.Context()) }, yes: true, back: true},
		{name: "a cluster that nobody knows", cluster: "west", again: later},
		{name: "an agent that has reported", cluster: "edge", do: renew, yes: true, back: true},
		{name: "somebody who asks later", cluster: "edge", do: func() { now.Step(time.Second) }, now: true, again: later},
		{name: "one that is silent", cluster: "edge", do: func() { now.Step(present + time.Millisecond) }, again: later},
		{name: "one that reports again", cluster: "edge", do: renew, yes: true},
		{name: "one that missed a renewal", cluster: "edge", do: func() { now.Step(20 * time.Second); renew() }, yes: true},
		{name: "one that missed more", cluster: "edge", do: func() { now.Step(21 * time.Second); presence.heartbeats.last("edge", nil); renew() }, yes: true, back: true},
		{name: "one whose Ready changed while it was silent", cluster: "edge", do: func() {
			now.Step(15 * time.Second)
			presence.heartbeats.last("edge", &metav1.Condition{Reason: "silent"})
			now.Step(15 * time.Second)
			renew()
		}, yes: true, back: true},
		{name: "an agent that has started", cluster: "edge", do: func() { now.Step(time.Second); acquired = now.Now(); renew() }, yes: true, back: true},
		{name: "one whose member does not answer it", cluster: "edge", do: func() {
			now.Step(10 * time.Second)
			silent = now.Now().UTC().Format(metav1.RFC3339Micro)
			renew()
		}, again: later},
		{name: "one that says nothing of its member", cluster: "edge", do: func() { now.Step(10 * time.Second); renew() }, yes: true, back: true},
	}
	for _, step := range steps {
		if step.do != nil {
			step.do()
		}
		asked := now.Now().Add(-time.Minute)
		if step.now {
			asked = now.Now()
		}
		since, yes, again := presence.Answers(step.cluster, asked)
		if back := since.Equal(now.Now()); back != step.back {
			t.Errorf("%s: back as of now: %t, want %t", step.name, back, step.back)
		}
		if yes != step.yes || again != step.again {
			t.Errorf("%s: answers %t, ask again after %s; want %t, %s", step.name, yes, again, step.yes, step.again)
		}
		probes := false
		select {
		case <-member.Suspects():
			probes = true
		default:
		}
		if probes != step.probes {
			t.Errorf("%s: somebody is to look: %t, want %t", step.name, probes, step.probes)
		}
	}
}
