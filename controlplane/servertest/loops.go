package servertest

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/hub"
)

// Register adds loops to a manager. Its context ends with them.
type Register = func(context.Context, ctrl.Manager) error

// Loops runs loops against the control plane until the test ends.
func (e *Env) Loops(t testing.TB, register Register) {
	t.Helper()
	stop := e.StartLoops(t, register)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("loops: %v", err)
		}
	})
}

// StartLoops runs loops against the control plane until stop is called, or as long
// as the process: they may outlive the test. Stop waits for their end, and returns
// what they ended with, each time.
func (e *Env) StartLoops(t testing.TB, register Register) (stop func() error) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	mgr, err := hub.NewManager(e.Config, scheme.New(), hub.Options{Log: logr.Discard(), Watch: e.plane.Kinds().Watch, SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := register(ctx, mgr); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}
