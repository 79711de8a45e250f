package customizations_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// TestWhatGoesEverywhere checks that an object without replicas has no
// requirements either, so that it goes to every cluster that is chosen, however
// replicas are divided.
func TestWhatGoesEverywhere(t *testing.T) {
	const broadcast, pods = "apps.kruise.io/v1alpha1 BroadcastJob", `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
	rulestest.CheckSizes(t, customizations.Table(), map[string]rulestest.Size{
		"a SidecarSet": {
			Kind: "apps.kruise.io/v1alpha1 SidecarSet", Object: `{spec: {namespace: shop, containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`,
			Replicas: "0 of nothing",
		},
		"a BroadcastJob with a limit": {
			Kind: broadcast, Object: `{spec: {parallelism: 4, ` + pods + `}}`,
			Replicas: `4 of resourceRequest: cpu: "1"`, Revise: 2, Revised: []string{"spec.parallelism: 4 -> 2"},
		},
		"a BroadcastJob without a limit": {
			Kind: broadcast, Object: `{spec: {` + pods + `}}`, Replicas: "0 of nothing", Revise: 2, Revised: []string{},
		},
		"a BroadcastJob limited to a share of the nodes": {
			Kind: broadcast, Object: `{spec: {parallelism: 10%, ` + pods + `}}`, Replicas: "0 of nothing", Revise: 2, Revised: []string{},
		},
	})
}
