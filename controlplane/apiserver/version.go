package apiserver

import (
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the release of Kubernetes that the server is made of.
const KubernetesVersion = "v1.36.4"

// A knownVersion answers /version with a release that clients can parse, also
// in a program that was linked without one, such as a test.
type knownVersion struct {
	basecompatibility.EffectiveVersion
}

// Info is what /version says.
func (v knownVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	if linked, err := utilversion.ParseSemantic(info.GitVersion); err == nil && linked.Major() > 0 {
		return info
	}
	info.GitVersion, info.GitCommit = KubernetesVersion, ""
	return info
}
