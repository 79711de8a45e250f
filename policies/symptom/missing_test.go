package symptom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLacks: what Pods wait for is read from what clusters say of them.
func TestLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Missing
	}{
		"no Pod is made without its ServiceAccount": {`FailedCreate: Error creating: pods "web-1-" is forbidden: error looking up service account ob/sa: serviceaccount "sa" not found`, Missing{"ServiceAccount", "sa"}},
		"the rest was cut off":                      {`FailedCreate: Error creating: pods "web-1-" is forbidden: error looking up service account ob/sa: servic…`, Missing{"ServiceAccount", "sa"}},
		"a variable is from a ConfigMap":            {`CreateContainerConfigError: configmap "settings" not found (1 of 1 Pod)`, Missing{"ConfigMap", "settings"}},
		"a volume is a Secret":                      {`FailedMount: MountVolume.SetUp failed for volume "v" : secret "db.example" not found`, Missing{"Secret", "db.example"}},
		"a volume is a claim":                       {`FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "data" not found. not found (1 of 1 Pod)`, Missing{"PersistentVolumeClaim", "data"}},
		"a server names the resource":               {`configmaps "settings" not found`, Missing{"ConfigMap", "settings"}},
		"a key is missing":                          {`couldn't find key a in ConfigMap ob/settings`, Missing{}},
		"it is another kind":                        {`namespaces "ob" not found`, Missing{}},
		"nothing is said":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := Lacks(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" || found != (tc.want != Missing{}) {
				t.Errorf("found: %v (-want +got):\n%s", found, diff)
			}
		})
	}
}
