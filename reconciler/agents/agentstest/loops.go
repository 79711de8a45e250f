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
func Register(_ context.Context, mgr ctrl.Manager) error { return register(mgr, agents.Options{}) }

// RegisterKarmadas adds loops that approve what karmadactl register asks for, too.
func RegisterKarmadas(_ context.Context, mgr ctrl.Manager) error {
	return register(mgr, agents.Options{KarmadactlRegister: true})
}

func register(mgr ctrl.Manager, opts agents.Options) error {
	registry := members.New(members.Options{Interpreter: interpreter.Native()})
	if err := mgr.Add(registry); err != nil {
		return err
	}
	events := record.NewFakeRecorder(manyEvents)
	if err := cluster.New(mgr.GetClient(), mgr.GetAPIReader(), registry, events, cluster.Options{}).Register(mgr); err != nil {
		return err
	}
	opts.Events = events
	return agents.New(mgr.GetClient(), mgr.GetAPIReader(), opts).Register(mgr)
}
