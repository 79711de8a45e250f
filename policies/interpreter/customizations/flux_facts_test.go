package customizations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// TestFluxStatuses checks how fields beyond the conditions of Flux's kinds are
// aggregated.
func TestFluxStatuses(t *testing.T) {
	rulestest.CheckSums(t, customizations.Table(), map[string]rulestest.Sum{
		"a release says what was released": {
			Kind: "helm.toolkit.fluxcd.io/v2beta1 HelmRelease", Statuses: []string{
				`{helmChart: flux-system/web, lastReleaseRevision: 3, lastAttemptedValuesChecksum: abc}`, `{helmChart: flux-system/web, lastReleaseRevision: 3}`,
			},
			Want: `{helmChart: flux-system/web, lastReleaseRevision: 3, lastAttemptedValuesChecksum: abc}`,
		},
		"but not where clusters differ": {
			Kind: "helm.toolkit.fluxcd.io/v2beta1 HelmRelease", Statuses: []string{`{lastReleaseRevision: 3}`, `{lastReleaseRevision: 4}`}, Want: `{lastReleaseRevision: null}`,
		},
		"a chart says what it was made of": {
			Kind: "source.toolkit.fluxcd.io/v1 HelmChart", Statuses: []string{`{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`, `{observedChartName: web}`},
			Want: `{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`,
		},
	})
}

// TestWhatSourcesReport checks that a source reports, besides conditions and
// revisions, the settings that it was fetched with.
func TestWhatSourcesReport(t *testing.T) {
	for kind, status := range map[string]string{
		"source.toolkit.fluxcd.io/v1 GitRepository": `{observedIgnore: "*.md", observedRecurseSubmodules: true}`,
		"source.toolkit.fluxcd.io/v1 Bucket":        `{observedIgnore: "*.md"}`,
		"source.toolkit.fluxcd.io/v1 OCIRepository": `{observedIgnore: "*.md", observedLayerSelector: {operation: copy}}`,
		"source.toolkit.fluxcd.io/v1 HelmChart":     `{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			obj := rulestest.Made(t, kind, `{status: `+status+`}`)
			reported, err := interpreter.New(customizations.Table()).ReflectStatus(obj)
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]any{}, rulestest.FromYAML(t, status)
			for field, v := range rulestest.FromYAML(t, string(reported.Raw)) {
				if want[field] != nil {
					got[field] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}
