package build

import "testing"

// Overrun lets a build of a tenant go on in this process after its time until the returned function is called.
func Overrun(t *testing.T, of *Builder, tenant string) (end func()) {
	t.Helper()
	b, err := of.here.overruns.Begin(tenant)
	if err != nil {
		t.Fatal(err)
	}
	b.Leave()
	return b.End
}
