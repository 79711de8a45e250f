package aggregated

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

const (
	maxIDLength = 128_000
	gibibyte    = 1 << 30
)

// DefaultRules are the rules of the kind Cluster.
func DefaultRules(now func() time.Time) Rules {
	return Rules{
		Now:      now,
		Prepare:  prepare,
		Validate: validate,
		ValidateUpdate: func(cluster, _ *clusterv1alpha1.Cluster) field.ErrorList {
			return validate(cluster)
		},
	}
}

// prepare moves the deprecated zone, stamps taints that evict, and brings the
// resource models into order; a new cluster without models gets the default ones.
func prepare(cluster *clusterv1alpha1.Cluster, creating bool, now time.Time) {
	spec := &cluster.Spec
	if spec.Zone != "" && len(spec.Zones) == 0 {
		spec.Zones, spec.Zone = []string{spec.Zone}, ""
	}
	for i := range spec.Taints {
		if taint := &spec.Taints[i]; taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded == nil {
			taint.TimeAdded = &metav1.Time{Time: now}
		}
	}
	switch {
	case len(spec.ResourceModels) > 0:
		standardize(spec.ResourceModels)
	case creating:
		spec.ResourceModels = defaultModels()
	}
}

// standardize sorts the models by grade and opens the first below and the last
// above, so that every node has a grade.
func standardize(models []clusterv1alpha1.ResourceModel) {
	slices.SortStableFunc(models, func(a, b clusterv1alpha1.ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })
	for i := range models[0].Ranges {
		models[0].Ranges[i].Min = *resource.NewQuantity(0, models[0].Ranges[i].Min.Format)
	}
	last := models[len(models)-1].Ranges
	for i := range last {
		last[i].Max = *resource.NewQuantity(math.MaxInt64, last[i].Max.Format)
	}
}

// defaultModels are nine grades, each up to twice the CPUs of the one before.
func defaultModels() []clusterv1alpha1.ResourceModel {
	cores := []int64{0, 1, 2, 4, 8, 16, 32, 64, 128, math.MaxInt64}
	memory := []int64{0, 4, 16, 32, 64, 128, 256, 512, 1024, math.MaxInt64}
	models := make([]clusterv1alpha1.ResourceModel, 0, len(cores)-1)
	for grade := range len(cores) - 1 {
		models = append(models, clusterv1alpha1.ResourceModel{
			Grade: uint(grade),
			Ranges: []clusterv1alpha1.ResourceModelRange{
				{Name: corev1.ResourceCPU, Min: *resource.NewQuantity(cores[grade], resource.DecimalSI), Max: *resource.NewQuantity(cores[grade+1], resource.DecimalSI)},
				{Name: corev1.ResourceMemory, Min: gibibytes(memory[grade]), Max: gibibytes(memory[grade+1])},
			},
		})
	}
	return models
}

func gibibytes(n int64) resource.Quantity {
	if n != math.MaxInt64 {
		n *= gibibyte
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}

// validate lists what is wrong with a cluster.
func validate(cluster *clusterv1alpha1.Cluster) field.ErrorList {
	errs := validateName(cluster.Name)
	path, spec := field.NewPath("spec"), &cluster.Spec
	if len(spec.ID) > maxIDLength {
		errs = append(errs, field.TooLong(path.Child("id"), "", maxIDLength))
	}
	errs = append(errs, validateSyncMode(spec.SyncMode, path.Child("syncMode"))...)
	errs = append(errs, validateEndpoint(spec.APIEndpoint, path.Child("apiEndpoint"))...)
	errs = append(errs, validateProxy(spec.ProxyURL, path.Child("proxyURL"))...)
	errs = append(errs, validateSecret(spec.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, validateSecret(spec.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)
	errs = append(errs, validatePlace(spec, path)...)
	errs = append(errs, validateTaints(spec.Taints, path.Child("taints"))...)
	return append(errs, validateModels(spec.ResourceModels, path.Child("resourceModels"))...)
}

func validateName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if name == "" {
		return nil // the server itself demands a name
	}
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		return field.ErrorList{field.TooLong(path, name, clusterv1alpha1.ClusterNameMaxLength)}
	}
	return invalid(path, name, validation.IsDNS1123Label(name))
}

func validateSyncMode(mode clusterv1alpha1.ClusterSyncMode, path *field.Path) field.ErrorList {
	switch mode {
	case clusterv1alpha1.Push, clusterv1alpha1.Pull:
		return nil
	case "":
		return field.ErrorList{field.Required(path, "")}
	default:
		return field.ErrorList{field.NotSupported(path, mode, []clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Pull, clusterv1alpha1.Push})}
	}
}

func validateEndpoint(endpoint string, path *field.Path) field.ErrorList {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, endpoint, "not a URL")}
	case u.Host == "":
		return field.ErrorList{field.Invalid(path, endpoint, "a host must be given")}
	case u.User != nil:
		return field.ErrorList{field.Invalid(path, u.Redacted(), "user information is not permitted")}
	case u.Fragment != "":
		return field.ErrorList{field.Invalid(path, endpoint, "a fragment is not permitted")}
	case u.RawQuery != "":
		return field.ErrorList{field.Invalid(path, endpoint, "a query is not permitted")}
	default:
		return nil
	}
}

func validateProxy(proxy string, path *field.Path) field.ErrorList {
	if proxy == "" {
		return nil
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", "not a URL")} // what cannot be parsed may hold a password
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		return nil
	default:
		return field.ErrorList{field.Invalid(path, u.Redacted(), "the scheme must be http, https or socks5")}
	}
}

func validateSecret(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref != nil && ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if ref != nil && ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	return errs
}

func validatePlace(spec *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{"provider": spec.Provider, "region": spec.Region, "zone": spec.Zone} {
		errs = append(errs, invalid(path.Child(name), value, validation.IsValidLabelValue(value))...)
	}
	if spec.Zone != "" && len(spec.Zones) > 0 {
		errs = append(errs, field.Forbidden(path.Child("zone"), "must not be given together with zones; use zones alone"))
	}
	for i, zone := range spec.Zones {
		errs = append(errs, invalid(path.Child("zones").Index(i), zone, validation.IsValidLabelValue(zone))...)
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, taint := range taints {
		at := path.Index(i)
		errs = append(errs, invalid(at.Child("key"), taint.Key, validation.IsQualifiedName(taint.Key))...)
		errs = append(errs, invalid(at.Child("value"), taint.Value, validation.IsValidLabelValue(taint.Value))...)
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.NotSupported(at.Child("effect"), taint.Effect, []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}))
		}
		if id := taint.Key + ":" + string(taint.Effect); seen[id] {
			errs = append(errs, field.Duplicate(at, id))
		} else {
			seen[id] = true
		}
	}
	return errs
}

// invalid makes an error of each problem with a value.
func invalid(path *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}
