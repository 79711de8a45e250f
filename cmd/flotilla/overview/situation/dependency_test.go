package situation

import (
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
)

func TestWhatToDoAboutADependency(t *testing.T) {
	for message, want := range map[string]string{
		"dependency flux-system/web is not ready (HealthCheckFailed)":                  "mend that first: flotilla tree kustomization/web -n flux-system",
		"dependency flux-system/web is suspended, and has not applied revision main@x": "let it go on: flotilla resume kustomization web -n flux-system",
		"dependency flux-system/bse does not exist":                                    "commit it, or correct spec.dependsOn: flotilla get kustomizations -n flux-system",
		"dependency flux-system/$(rm) is not ready":                                    "see what it depends on: flotilla get kustomizations -A",
		"something else": "see what it depends on: flotilla get kustomizations -A",
	} {
		if got := remark.DependencyNext(message); got != want {
			t.Errorf("%s\n got %s\nwant %s", message, got, want)
		}
	}
	cause := Problem{State: Failed, Kind: "Kustomization", Namespace: "b", Name: "b", Message: "health check failed"}
	waits := Problem{State: Failed, Kind: "Kustomization", Namespace: "a", Name: "a", Message: "dependency b/b is not ready"}
	if compareProblems(cause, waits) >= 0 {
		t.Error("what waits is told before what it waits for")
	}
}
