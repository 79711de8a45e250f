package fleet

import (
	"context"
	"testing"
	"time"
)

// Kubectl runs kubectl against the control plane and fails the test if it does.
func (f *Fleet) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	out, err := f.TryKubectl(t, stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryKubectl runs kubectl against the control plane and returns what it printed.
func (f *Fleet) TryKubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	return Run(t.Context(), []byte(stdin), "flotilla", append([]string{"kubectl", "--kubeconfig", f.Hub.Kubeconfig}, args...)...)
}

// Apply writes manifests to the control plane and removes them after the test.
func (f *Fleet) Apply(t testing.TB, manifests string) {
	t.Helper()
	f.Kubectl(t, manifests, "apply", "-f", "-")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Slack*time.Minute)
		defer cancel()
		_, err := Run(ctx, []byte(manifests), "flotilla", "kubectl", "--kubeconfig", f.Hub.Kubeconfig,
			"delete", "--ignore-not-found", "--wait=false", "-f", "-")
		if err != nil {
			t.Error(err)
		}
	})
}

// Flotilla runs the command line against the control plane, and fails the test if it
// does. A command is the first of args.
func (f *Fleet) Flotilla(t testing.TB, args ...string) string {
	t.Helper()
	out, err := Run(t.Context(), nil, "flotilla", append([]string{args[0], "--kubeconfig", f.Hub.Kubeconfig}, args[1:]...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
