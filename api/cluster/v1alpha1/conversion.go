package v1alpha1

import (
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// addConversions lets a parameter codec read ClusterProxyOptions from a query.
func addConversions(scheme *runtime.Scheme) error {
	return scheme.AddConversionFunc((*url.Values)(nil), (*ClusterProxyOptions)(nil),
		func(from, to any, _ conversion.Scope) error {
			to.(*ClusterProxyOptions).Path = from.(*url.Values).Get("path")
			return nil
		})
}
