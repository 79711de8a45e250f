package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWithDescheduler: failover brings the descheduler, unless it is left out, or loops are chosen by name.
func TestWithDescheduler(t *testing.T) {
	for name, tc := range map[string]struct {
		list     []string
		failover bool
		want     []string
	}{
		"all":                    {[]string{"*"}, false, []string{"*"}},
		"all, with failover":     {[]string{"*"}, true, []string{"*", "descheduler"}},
		"left out by name":       {[]string{"*", "-descheduler"}, true, []string{"*", "-descheduler"}},
		"loops chosen by name":   {[]string{"scheduler"}, true, []string{"scheduler"}},
		"none":                   {[]string{"-*"}, true, []string{"-*"}},
		"one is left out of all": {[]string{"*", "-remedy"}, true, []string{"*", "-remedy", "descheduler"}},
	} {
		if diff := cmp.Diff(tc.want, withDescheduler(tc.list, tc.failover)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
