package validate

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate/syntax"
)

// DefaultCluster fills in c and brings it into its canonical form: a deprecated
// zone becomes zones, taints that evict are dated now, and resource models are
// put in order; on creation a cluster without them gets the default ones.
func DefaultCluster(c *clusterv1alpha1.Cluster, create bool, now time.Time) {
	if c.Spec.Zone != "" && (len(c.Spec.Zones) == 0 || slices.Equal(c.Spec.Zones, []string{c.Spec.Zone})) { // it may be applied again
		c.Spec.Zones, c.Spec.Zone = []string{c.Spec.Zone}, ""
	}
	for i := range c.Spec.Taints {
		t := &c.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded == nil {
			at := metav1.NewTime(now.UTC().Truncate(time.Second))
			t.TimeAdded = &at
		}
	}
	switch {
	case len(c.Spec.ResourceModels) > 0:
		standardise(c.Spec.ResourceModels)
	case create:
		c.Spec.ResourceModels = DefaultModels()
	}
}

// Cluster says what is wrong with c. old is what c was, nil on creation.
func Cluster(c, old *clusterv1alpha1.Cluster) (field.ErrorList, []string) {
	errs := syntax.ClusterName(c.Name, field.NewPath("metadata", "name"))
	if old == nil && strings.HasSuffix(c.Name, impersonatorSuffix) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must not end with "+impersonatorSuffix+", as the Secrets of other clusters do"))
	}
	spec, path := &c.Spec, field.NewPath("spec")
	if len(spec.ID) > maxIDLength {
		errs = append(errs, field.TooLong(path.Child("id"), spec.ID, maxIDLength))
	}
	if !slices.Contains([]clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Push, clusterv1alpha1.Pull}, spec.SyncMode) {
		errs = append(errs, field.NotSupported(path.Child("syncMode"), spec.SyncMode,
			[]clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Push, clusterv1alpha1.Pull}))
	}
	errs = append(errs, endpoint(spec.APIEndpoint, path.Child("apiEndpoint"))...)
	errs = append(errs, secretRef(spec.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, secretRef(spec.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)
	errs = append(errs, proxy(spec.ProxyURL, path.Child("proxyURL"))...)
	errs = append(errs, location(spec, path)...)
	errs = append(errs, taints(spec.Taints, path.Child("taints"))...)
	if old == nil || !equality.Semantic.DeepEqual(old.Spec.ResourceModels, spec.ResourceModels) {
		errs = append(errs, models(spec.ResourceModels, path.Child("resourceModels"))...)
	}
	var warnings []string
	if spec.InsecureSkipTLSVerification {
		warnings = append(warnings, "spec.insecureSkipTLSVerification: the identity of the cluster's API server is not checked")
	}
	return errs, warnings
}

// impersonatorSuffix ends the name of a Secret that belongs to the cluster whose
// name is before it.
const impersonatorSuffix = "-impersonator"

const maxIDLength = 128000

func endpoint(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The parser's own text may repeat credentials.
		return field.ErrorList{field.Invalid(path, "", "must be a URL")}
	case u.Host == "":
		return field.ErrorList{field.Invalid(path, u.Scheme, "host must be provided")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(path, u.Host, "user information is not permitted")}
	case u.Fragment != "":
		return field.ErrorList{field.Invalid(path, u.Host, "fragments are not permitted")}
	case u.RawQuery != "":
		return field.ErrorList{field.Invalid(path, u.Host, "query parameters are not permitted")}
	}
	return nil
}

func proxy(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", "must be a URL")}
	}
	if !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return field.ErrorList{field.NotSupported(path, u.Scheme, []string{"http", "https", "socks5"})}
	}
	return nil
}

func secretRef(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	return errs
}

func location(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	errs := syntax.LabelValue(spec.Provider, path.Child("provider"))
	errs = append(errs, syntax.LabelValue(spec.Region, path.Child("region"))...)
	errs = append(errs, syntax.LabelValue(spec.Zone, path.Child("zone"))...)
	for i, z := range spec.Zones {
		errs = append(errs, syntax.LabelValue(z, path.Child("zones").Index(i))...)
	}
	if spec.Zone != "" && len(spec.Zones) > 0 {
		errs = append(errs, field.Invalid(path.Child("zone"), spec.Zone, "zone and zones can not co-exist"))
	}
	return errs
}

func taints(ts []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type unique struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[unique]bool{}
	for i, t := range ts {
		at := path.Index(i)
		errs = append(errs, syntax.LabelName(t.Key, at.Child("key"))...)
		errs = append(errs, syntax.LabelValue(t.Value, at.Child("value"))...)
		if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect,
				[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}))
		}
		u := unique{t.Key, t.Effect}
		if seen[u] {
			errs = append(errs, field.Duplicate(at, fmt.Sprintf("%s:%s", t.Key, t.Effect)))
		}
		seen[u] = true
	}
	return errs
}

func models(ms []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	grades := map[uint]bool{}
	for i := range ms {
		at := path.Index(i)
		if grades[ms[i].Grade] {
			errs = append(errs, field.Duplicate(at.Child("grade"), ms[i].Grade))
		}
		grades[ms[i].Grade] = true
		if len(ms[i].Ranges) != len(ms[0].Ranges) {
			errs = append(errs, field.Invalid(at.Child("ranges"), len(ms[i].Ranges), "every grade must have the same resources"))
			continue
		}
		for j := range ms[i].Ranges {
			errs = append(errs, modelRange(ms, i, j, at.Child("ranges").Index(j))...)
		}
	}
	return errs
}

// modelRange checks that ranges of one resource follow each other without a
// gap, from zero to infinity.
func modelRange(ms []clusterv1alpha1.ResourceModel, i, j int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	r := &ms[i].Ranges[j]
	if r.Name != ms[0].Ranges[j].Name {
		errs = append(errs, field.Invalid(path.Child("name"), r.Name, "resources must have the same order in every grade"))
		return errs
	}
	if r.Max.Cmp(r.Min) <= 0 {
		errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "max must be greater than min"))
	}
	if i == 0 && !r.Min.IsZero() {
		errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), "the first grade must start at 0"))
	}
	// A grade before that has fewer ranges was complained about already.
	if i > 0 && j < len(ms[i-1].Ranges) && r.Min.Cmp(ms[i-1].Ranges[j].Max) != 0 {
		errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), "must be the max of the grade before"))
	}
	if i == len(ms)-1 && r.Max.Value() != math.MaxInt64 {
		errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "the last grade must end at MaxInt64"))
	}
	return errs
}
