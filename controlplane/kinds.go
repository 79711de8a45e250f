package controlplane

import (
	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/openapi"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
)

// extension is what the server has beyond Kubernetes and custom resources.
func extension(clk clock.PassiveClock, definitions []*apiextensionsv1.CustomResourceDefinition) *apiserver.Extension {
	kinds := aggregated.NewKinds(aggregated.Options{Definitions: definitions, Now: clk.Now, NewID: uuid.NewString})
	return &apiserver.Extension{
		Name:         "flotilla",
		Scheme:       kinds.Scheme,
		Codecs:       kinds.Codecs,
		StorageCodec: kinds.StorageCodec,
		Definitions:  openapi.GetOpenAPIDefinitions,
		Groups:       kinds.Groups,
		Priorities: map[schema.GroupVersion]apiserver.Priority{
			clusterv1alpha1.GroupVersion: {Group: 2000, Version: 10},
			workv1alpha2.GroupVersion:    {Group: 1000, Version: 100},
			workv1alpha1.GroupVersion:    {Group: 1000, Version: 100},
		},
	}
}

// plugins are the server's own admission.
func plugins(claim admission.Claimer) []apiserver.Plugin {
	out := []apiserver.Plugin{
		{Name: "FlotillaKinds", Interface: admission.NewPlugin(uuid.NewString)},
		{Name: "FlotillaProtection", Interface: admission.NewProtection()},
	}
	if claim != nil {
		out = append(out, apiserver.Plugin{Name: "FlotillaClaims", Interface: admission.NewClaiming(claim)})
	}
	return out
}
