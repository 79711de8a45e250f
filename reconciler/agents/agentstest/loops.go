package agentstest

import (
	"context"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/agents"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
)

// manyEvents is more than any test makes: a recorder that is full would block.
const manyEvents = 1000

// Register adds the loops to a manager. Nobody sees their events.
func Register(_ context.Context, mgr ctrl.Manager) error {
	registry := members.New(members.Options{Interpreter: interpreter.Native()})
	if err := mgr.Add(registry); err != nil {
		return err
	}
	events := record.NewFakeRecorder(manyEvents)
	if err := cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, events, cluster.Options{}).Register(mgr); err != nil {
		return err
	}
	return agents.New(mgr.GetClient(), mgr.GetAPIReader(), agents.Options{Events: events}).Register(mgr)
}
