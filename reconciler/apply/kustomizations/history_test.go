package kustomizations_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// originOf is what an artifact of a revision was packed from; the first says nothing of that.
func originOf(revision string) string {
	if revision == "" || revision == "1" {
		return ""
	}
	return "main@sha1:" + revision
}

func TestTheRevisionThatChangedSomething(t *testing.T) {
	const success, refused = "ReconciliationSucceeded", "PruneBlocked"
	type outcome struct {
		revision, digest, reason string
		anew                     bool
	}
	cases := map[string]struct {
		outcomes []outcome
		want     string
	}{
		"the first one":                     {[]outcome{{"1", "a", success, false}}, "1"},
		"the next one changes nothing":      {[]outcome{{"1", "a", success, false}, {"2", "a", success, false}}, "1"},
		"nor does one after that":           {[]outcome{{"1", "a", success, false}, {"2", "a", success, false}, {"3", "a", success, false}}, "1"},
		"the next one changes something":    {[]outcome{{"1", "a", success, false}, {"2", "b", success, false}}, "2"},
		"one goes back":                     {[]outcome{{"1", "a", success, false}, {"2", "b", success, false}, {"3", "a", success, false}}, "3"},
		"one is refused":                    {[]outcome{{"1", "a", success, false}, {"2", "b", refused, false}}, "2"},
		"the refused one is taken back":     {[]outcome{{"1", "a", success, false}, {"2", "b", refused, false}, {"3", "a", success, false}}, "3"},
		"one cannot be built":               {[]outcome{{"1", "a", success, false}, {"2", "", "BuildFailed", false}}, "2"},
		"that one is taken back":            {[]outcome{{"1", "a", success, false}, {"2", "", "BuildFailed", false}, {"3", "a", success, false}}, "3"},
		"the applied one is built in vain":  {[]outcome{{"1", "a", success, false}, {"2", "a", success, false}, {"2", "", "BuildFailed", false}, {"3", "a", success, false}}, "1"},
		"its next spec cannot be built":     {[]outcome{{"1", "a", success, false}, {"2", "a", success, false}, {"2", "", "BuildFailed", true}}, "2"},
		"that is mended":                    {[]outcome{{"1", "a", success, false}, {"2", "a", success, false}, {"2", "", "BuildFailed", true}, {"3", "a", success, true}}, "3"},
		"one never ends, and is taken back": {[]outcome{{"1", "a", success, false}, {"2", "b", "", false}, {"3", "a", success, false}}, "3"},
		"its spec is another one":           {[]outcome{{"1", "a", success, false}, {"2", "a", success, true}, {"3", "a", success, false}}, "2"},
		"nothing has been tried":            {nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := &kustomizev1.KustomizationStatus{}
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			for _, o := range tc.outcomes {
				now = now.Add(time.Second)
				status.LastAttemptedRevision = o.revision
				if o.reason == success {
					status.LastAppliedRevision = o.revision
				}
				if o.reason == "" {
					kustomizations.Written(status, kustomizations.Outcome{Digest: o.digest})
					continue
				}
				kustomizations.Remember(status, kustomizations.Outcome{Digest: o.digest, Revision: o.revision, Origin: originOf(o.revision), Reason: o.reason, Anew: o.anew, Begun: now, Now: now})
			}
			if got := inventory.Changed(status); got != tc.want {
				t.Errorf("changed at %q, want %q", got, tc.want)
			}
			if last := status.History.Latest(); last != nil && last.Metadata["gitops.flotilla.io/changed-origin"] != originOf(last.Metadata["gitops.flotilla.io/changed"]) && last.Metadata["gitops.flotilla.io/changed"] != "" {
				t.Errorf("what that was packed from: %q", last.Metadata)
			}
		})
	}
}

// What an outcome records on behalf of the Kustomization, about what is applied and what left, moves to the next
// outcome, whichever that is.
func TestWhatIsRecordedStaysWithTheLatestOutcome(t *testing.T) {
	const success = "ReconciliationSucceeded"
	type outcome struct{ revision, digest, reason string }
	cases := map[string]struct {
		first, next outcome
	}{
		"the next revision changes nothing":   {outcome{"1", "a", success}, outcome{"2", "a", success}},
		"the next revision changes something": {outcome{"1", "a", success}, outcome{"2", "b", success}},
		"the next revision is refused":        {outcome{"1", "a", success}, outcome{"2", "b", "PruneBlocked"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := &kustomizev1.KustomizationStatus{}
			remember := func(o outcome) {
				kustomizations.Remember(status, kustomizations.Outcome{Digest: o.digest, Revision: o.revision, Origin: originOf(o.revision), Reason: o.reason})
			}
			remember(tc.first)
			removed := []inventory.ID{{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}}
			inventory.RecordRemoved(status, removed, true)
			remember(tc.next)
			if diff := cmp.Diff(removed, inventory.Removed(*status)); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}
