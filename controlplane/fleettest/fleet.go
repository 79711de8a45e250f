package fleettest

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
)

// ReadyTimeout is how long a cluster that has joined may take to be ready.
const ReadyTimeout = 2 * time.Minute

// Fleet is a control plane with its loops and one member.
type Fleet struct {
	// Hub is the control plane.
	Hub *servertest.Env
	// Member is the cluster, under the name that it was given.
	Member *membertest.Member
	// Edge is a client of the member for every kind that Flotilla knows, without a
	// cache.
	Edge client.Client
}

// Start runs a member and the loops, and joins the member. It returns once the
// control plane shows it as ready. The loops must have "cluster" among them.
func Start(t testing.TB, hub *servertest.Env, opts member.Options, loops servertest.Register) *Fleet {
	t.Helper()
	f := &Fleet{Hub: hub, Member: membertest.Start(t, opts)}
	var err error
	if f.Edge, err = client.New(f.Member.Config, client.Options{Scheme: scheme.New()}); err != nil {
		t.Fatal(err)
	}
	hub.Loops(t, loops)
	if err := join.Join(t.Context(), join.Options{Name: opts.Name, Hub: hub.Hub, Member: f.Edge, MemberConfig: f.Member.Config}); err != nil {
		t.Fatal(err)
	}
	if err := join.Ready(t.Context(), hub.Hub, opts.Name, ReadyTimeout); err != nil {
		t.Fatal(err)
	}
	return f
}
