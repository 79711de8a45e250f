package servertest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/flotilla-io/flotilla/controlplane/etcd/storetest"
)

// Pool lends control planes that are as new to the tests of a package, which need them for
// themselves; see storetest. They end with Main, as that of Shared does.
type Pool struct{ pool storetest.Pool[*Env] }

// Main runs the tests, ends the control planes and what else outlives a test, and returns
// the exit code.
func (p *Pool) Main(m *testing.M, also ...interface{ Stop() error }) int {
	code := m.Run()
	errs := []error{p.pool.Stop()}
	for _, other := range also {
		errs = append(errs, other.Stop())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "servers of the tests:", err)
		return max(code, 1)
	}
	return code
}

// Env returns a control plane that no other test has until this one ends.
func (p *Pool) Env(t testing.TB) *Env {
	t.Helper()
	return p.pool.Lend(t, "", Start)
}
