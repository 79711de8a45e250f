package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/omissions"
	"github.com/flotilla-io/flotilla/policies/validate"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// Options configure how files are checked.
type Options struct {
	// Namespace is the namespace of objects without one; empty means default.
	Namespace string
	// AllowNoExecuteTaints accepts ClusterTaintPolicies whose taints evict.
	AllowNoExecuteTaints bool
	// Build enables building the Kustomizations of folders and checking the results.
	Build bool
	// Folders are the given folders. Their kustomizations are built even if there are no other files.
	Folders []string
	// Now is the time, for defaults that depend on it.
	Now time.Time
}

// A Linter has the schemas of the kinds. It may be reused, but not concurrently.
type Linter struct {
	schemas *schemas
	kinds   map[schema.GroupVersionKind]validate.Kind
}

// linter is one run of a Linter.
type linter struct {
	*Linter
	opts     Options
	report   Report
	objects  []*object
	made     []*object           // built from the files
	reported map[findingKey]bool // of objects in files
}

// object is an object in a file.
type object struct {
	file      string
	folder    string // the given folder with the file; empty if the file was given
	kustomize bool   // it may be a patch, or be patched
	patch     bool   // it is a patch, and no object of its own
	by        string // what builds it, to be added to a message; empty for an object in a file
	doc       build.Document
	gvk       schema.GroupVersionKind
	namespace string // Options.Namespace if the file has none
	name      string
	value     validate.Object // nil if its kind is not checked, or it could not be read
	kind      validate.Kind
}

// New returns a Linter. An error means a bug in the program.
func New() (*Linter, error) {
	known, err := newSchemas()
	if err != nil {
		return nil, err
	}
	out := &Linter{schemas: known, kinds: map[schema.GroupVersionKind]validate.Kind{}}
	for _, k := range validate.Kinds() {
		out.kinds[k.GroupVersionKind] = k
	}
	return out, nil
}

// Lint checks files, and what the Kustomizations of folders build. Problems in files are findings, not errors.
func (known *Linter) Lint(ctx context.Context, files []File, opts Options) (Report, error) {
	if opts.Namespace == "" {
		opts.Namespace = metav1.NamespaceDefault
	}
	l := &linter{Linter: known, opts: opts, reported: map[findingKey]bool{}}
	byName := func(a, b File) int { return strings.Compare(a.Name, b.Name) }
	for _, f := range slices.SortedStableFunc(slices.Values(files), byName) {
		l.report.Files++
		if err := l.file(f); err != nil {
			return Report{}, err
		}
	}
	l.judge(l.objects)
	if opts.Build {
		if err := (builds{l}).all(ctx); err != nil {
			return Report{}, err
		}
	}
	receivers(ctx, l)
	l.across()
	l.report.sort()
	return l.report, nil
}

// add adds a finding about a field of an object.
func (l *linter) add(o *object, severity Severity, path, message string) {
	what := findingKey{o.gvk, o.name, path, message}
	if o.by != "" && l.reported[what] {
		return
	}
	l.reported[what] = l.reported[what] || o.by == ""
	l.report.add(Finding{
		File: o.file, Line: o.doc.LineOf(path), Document: o.doc.Number, Severity: severity,
		Kind: o.gvk.Kind, Namespace: o.shown(), Name: o.name, Field: path, Message: message + o.by,
	})
}

// shown returns the namespace in the file.
func (o *object) shown() string {
	metadata, _ := o.doc.Fields["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// inLine matches the line number in an error about YAML.
var inLine = regexp.MustCompile(`\bline (\d+)(: ?)?`)

// lineIn removes the line numbers from an error about YAML, and returns the last one, which is the
// innermost.
func lineIn(text string) (rest string, line int) {
	for _, m := range inLine.FindAllStringSubmatch(text, -1) {
		line, _ = strconv.Atoi(m[1]) // digits: at worst too many, then 0
		if m[2] != "" {
			text = strings.Replace(text, m[0], "", 1)
		}
	}
	return text, line
}

// file reads the objects of a file.
func (l *linter) file(f File) error {
	docs, err := build.Read(f.Content, build.Limits{})
	if err != nil && f.Patch {
		return nil // a list of changes: the build reports an invalid one
	}
	if err != nil {
		text, line := lineIn(err.Error())
		l.report.add(Finding{File: f.Name, Line: line, Severity: Error, Message: text})
		return nil
	}
	if sealed, err := sops.Read(f.Content); sealed != nil || err != nil {
		l.report.Encrypted++
	}
	for _, doc := range docs {
		if err := l.document(f, doc); err != nil {
			return err
		}
	}
	return nil
}

// document reads the object in a document.
func (l *linter) document(f File, doc build.Document) error {
	apiVersion, _ := doc.Fields["apiVersion"].(string)
	kind, _ := doc.Fields["kind"].(string)
	if f.Patch && (apiVersion == "" || kind == "") {
		return nil // a list of changes, or one with a target
	}
	if apiVersion == "" || kind == "" {
		severity, message := Error, "is no Kubernetes object: apiVersion or kind is missing"
		if f.Folder != "" && apiVersion == "" && kind == "" {
			severity, message = Warning, "is no Kubernetes object and was not looked at: name files instead of the folder, or move it"
		}
		l.report.add(Finding{File: f.Name, Line: doc.Line, Document: doc.Number, Severity: severity, Message: message})
		return nil
	}
	l.report.Objects++
	metadata, _ := doc.Fields["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	o := &object{file: f.Name, folder: f.Folder, kustomize: f.Kustomized, patch: f.Patch, doc: doc, gvk: schema.FromAPIVersionAndKind(apiVersion, kind), name: name}
	o.namespace = o.shown()
	l.objects = append(l.objects, o)
	if name == "" {
		message := "is missing"
		if _, generated := metadata["generateName"]; generated {
			message += ": what gets its name from generateName cannot be applied again, and is refused"
		}
		l.add(o, Error, "metadata.name", message)
		return nil
	}
	for _, omitted := range omissions.Of(doc.Fields) {
		l.add(o, Warning, omitted.Path, "is not applied by a Kustomization: "+omitted.Why)
	}
	return l.schema(o)
}

// foreign are Flux's kinds without a definition on the control plane.
var foreign = map[string]bool{
	"HelmRepository": true, "HelmChart": true, "HelmRelease": true,
	"ArtifactGenerator": true, "ImageRepository": true, "ImagePolicy": true, "ImageUpdateAutomation": true,
}

// known reads and checks an object of one of the control plane's kinds.
func (l *linter) known(o *object) error {
	s, err := l.schemas.of(o.gvk)
	if err != nil {
		return err
	}
	if s == nil {
		switch {
		case foreign[o.gvk.Kind] && strings.HasSuffix(o.gvk.Group, ".toolkit.fluxcd.io"):
			l.add(o, Warning, "kind", fmt.Sprintf("is one of Flux's that the control plane does not act on: a Kustomization applies it if the CustomResourceDefinition of %s is committed, and the Flux of a cluster acts on it if a policy sends it there", o.gvk.Kind))
		case l.schemas.groups[o.gvk.Group]:
			l.add(o, Error, "kind", fmt.Sprintf("%s has no kind %s: correct apiVersion or kind", o.gvk.GroupVersion(), o.gvk.Kind))
		}
		return nil // somebody else's kind
	}
	l.report.count(o)
	if s.namespaced && o.namespace == "" {
		o.namespace = l.opts.Namespace
	}
	fields := runtime.DeepCopyJSON(o.doc.Fields)
	for _, path := range s.unknown(fields) {
		if !o.patch || !strings.Contains(path, "$") { // "$patch: delete" and the like
			l.add(o, Error, path, "unknown field")
		}
	}
	if o.patch {
		return nil // it need not be complete: the built object is checked
	}
	l.metadata(o, s.namespaced)
	k, judged := l.kinds[o.gvk]
	if judged {
		validate.RenamePurgeModes(fields)
	}
	errs := s.complete(fields)
	for _, e := range errs {
		l.add(o, Error, e.Field, e.ErrorBody()+insteadOf(o.doc.Fields, e)+longForm(o.doc.Fields, e))
	}
	if len(errs) == 0 {
		refused(l, o, fields)
	}
	if !judged || len(errs) > 0 {
		return nil
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetNamespace(o.namespace)
	value := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, value); err != nil {
		l.add(o, Error, "", err.Error())
		return nil
	}
	o.kind, o.value = k, value
	return nil
}

// metadata checks the metadata, which the schemas of kinds leave out.
func (l *linter) metadata(o *object, namespaced bool) {
	content, err := json.Marshal(o.doc.Fields["metadata"])
	if err != nil {
		l.add(o, Error, "metadata", err.Error())
		return
	}
	meta := metav1.ObjectMeta{}
	strict, err := kjson.UnmarshalStrict(content, &meta)
	if err != nil {
		l.add(o, Error, "metadata", err.Error())
		return
	}
	l.strict(o, "metadata.", strict)
	at := field.NewPath("metadata")
	switch {
	case namespaced && meta.Namespace == "":
		meta.Namespace = l.opts.Namespace
	case !namespaced && meta.Namespace != "":
		l.add(o, Error, "metadata.namespace", o.gvk.Kind+" is not in a namespace: remove it")
		meta.Namespace = ""
	}
	for _, e := range apivalidation.ValidateObjectMeta(&meta, namespaced, apivalidation.NameIsDNSSubdomain, at) {
		l.add(o, Error, e.Field, e.ErrorBody())
	}
}

// strict reports the errors of strict decoding, with a prefix for their paths.
func (l *linter) strict(o *object, prefix string, errs []error) {
	for _, err := range errs {
		text := err.Error()
		if quoted, isUnknown := strings.CutPrefix(text, "unknown field "); isUnknown {
			if path, err := strconv.Unquote(quoted); err == nil {
				l.add(o, Error, prefix+path, "unknown field")
				continue
			}
		}
		l.add(o, Error, strings.TrimSuffix(prefix, "."), text)
	}
}

// cluster checks a Cluster, which has no schema but its Go type.
func (l *linter) cluster(o *object) {
	l.report.count(o)
	content, err := json.Marshal(o.doc.Fields)
	if err != nil {
		l.add(o, Error, "", err.Error())
		return
	}
	c := &clusterv1alpha1.Cluster{}
	strict, err := kjson.UnmarshalStrict(content, c)
	if err != nil {
		l.add(o, Error, "", err.Error())
		return
	}
	l.strict(o, "", strict)
	validate.DefaultCluster(c, true, l.opts.Now)
	errs, warnings := validate.Cluster(c, nil)
	l.record(o, errs, warnings)
}

// judge checks the objects that could be read as admission does.
func (l *linter) judge(objects []*object) {
	facts := validate.Facts{AllowNoExecuteTaints: l.opts.AllowNoExecuteTaints}
	for _, o := range l.objects {
		if c, ok := o.value.(*configv1alpha1.ResourceInterpreterCustomization); ok {
			facts.Customizations = append(facts.Customizations, *c)
		}
	}
	for _, o := range objects {
		if o.value == nil {
			continue
		}
		o.kind.Identity.Give(o.value, nil, func() string { return "00000000-0000-0000-0000-000000000000" })
		o.kind.Default(o.value)
		errs, warnings := o.kind.Check(o.value, nil, facts)
		l.record(o, errs, warnings)
	}
}

// record reports the results of a check. Warnings begin with the path of their field.
func (l *linter) record(o *object, errs field.ErrorList, warnings []string) {
	for _, e := range errs {
		l.add(o, Error, e.Field, e.ErrorBody())
	}
	for _, text := range warnings {
		path, message, found := strings.Cut(text, ": ")
		if !found || strings.Contains(path, " ") {
			path, message = "", text
		}
		l.add(o, Warning, path, message)
	}
}
