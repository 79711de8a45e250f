package network

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/flotilla-io/flotilla/api/networking/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// exposures are the ways in which a service may be offered.
var exposures = []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster, networkingv1alpha1.ExposureTypeLoadBalancer}

// Service says what is wrong with s. old is what s was, nil on creation.
func Service(s, old *networkingv1alpha1.MultiClusterService) (field.ErrorList, []string) {
	spec, path := &s.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if len(spec.Types) != 1 {
		errs = append(errs, field.Invalid(path.Child("types"), spec.Types, "there must be exactly one type"))
	}
	for i, t := range spec.Types {
		if !slices.Contains(exposures, t) {
			errs = append(errs, field.NotSupported(path.Child("types").Index(i), t, exposures))
		}
	}
	if old != nil && !slices.Equal(old.Spec.Types, spec.Types) {
		errs = append(errs, field.Forbidden(path.Child("types"), "the type is immutable"))
	}
	names := map[string]bool{}
	for i, p := range spec.Ports {
		at := path.Child("ports").Index(i)
		errs = append(errs, syntax.Port(p.Port, at.Child("port"))...)
		if names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names[p.Name] = true
	}
	for _, list := range []struct {
		field    string
		clusters []networkingv1alpha1.ClusterSelector
	}{{"providerClusters", spec.ProviderClusters}, {"consumerClusters", spec.ConsumerClusters}} {
		for i, c := range list.clusters {
			errs = append(errs, syntax.ClusterName(c.Name, path.Child(list.field).Index(i).Child("name"))...)
		}
	}
	return errs, deprecatedClusters(spec, path)
}

func deprecatedClusters(spec *networkingv1alpha1.MultiClusterServiceSpec, path *field.Path) []string {
	var out []string
	for _, d := range []struct {
		field, use string
		set        bool
	}{
		{"range", "providerClusters and consumerClusters", len(spec.Range.ClusterNames) > 0},
		{"serviceProvisionClusters", "providerClusters", len(spec.ServiceProvisionClusters) > 0},
		{"serviceConsumptionClusters", "consumerClusters", len(spec.ServiceConsumptionClusters) > 0},
	} {
		if d.set {
			out = append(out, syntax.Advise(path.Child(d.field), "is deprecated: use %s", d.use))
		}
	}
	return out
}
