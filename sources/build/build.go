package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync/atomic"

	"github.com/fluxcd/pkg/apis/kustomize"
	"golang.org/x/sync/semaphore"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	k8syaml "sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/sources/build/overrun"
	"github.com/flotilla-io/flotilla/sources/build/patterns"
	"github.com/flotilla-io/flotilla/sources/build/remote"
	"github.com/flotilla-io/flotilla/sources/build/sealed"
)

// Errors that callers branch on. Every error of a build is one of these, or of
// package sealed, except for that of a context that ended and overrun.ErrFull. They are about the files and not about this
// machine, so that a retry with the same files does not help.
var (
	// ErrPath means that the path is not among the files.
	ErrPath = errors.New("path not found")
	// ErrEmpty means that there is no manifest below the path.
	ErrEmpty = errors.New("no manifests")
	// ErrInvalid means that a file or object is malformed.
	ErrInvalid = errors.New("invalid manifest")
	// ErrDuplicate means that the same object exists twice.
	ErrDuplicate = errors.New("duplicate object")
	// ErrRefused means that the files ask for something that is not allowed here.
	ErrRefused = errors.New("not allowed")
	// ErrTooLarge means that the files or objects exceed Limits.
	ErrTooLarge = errors.New("too large")
	// ErrKustomize means that kustomize could not build the files.
	ErrKustomize = errors.New("kustomize build failed")
	// ErrSubstitute means that variables could not be replaced.
	ErrSubstitute = errors.New("variable substitution failed")
)

// Limits bound a build. Zero fields have the default.
type Limits struct {
	// Document is the size of one YAML document or object, in bytes. Default 3 MiB.
	Document int
	// Objects is how many objects a build may make. Default 10,000.
	Objects int
	// Depth is how deeply a document, or a chain of kustomizations, may be nested.
	// Default 100.
	Depth int
	// Aliases is how many nodes a document with YAML aliases may expand to.
	// Default 100,000.
	Aliases int
	// Bytes is the size of the files that are built, each counted as often as
	// it is used. Default 100 MiB.
	Bytes int
	// Nodes is how many YAML nodes (keys, values and entries of lists) the files
	// that are built may have, each counted as often as it is used. A node takes
	// some hundred bytes of memory, whatever its size in the file. Default
	// 1,000,000.
	Nodes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field    *int
		fallback int
	}{{&l.Document, 3 << 20}, {&l.Objects, 10_000}, {&l.Depth, 100}, {&l.Aliases, 100_000}, {&l.Bytes, 100 << 20}, {&l.Nodes, 1_000_000}} {
		if *f.field == 0 {
			*f.field = f.fallback
		}
	}
	return l
}

// Input is what to build. The files are only read.
type Input struct {
	// Files are contents by slash-separated path from the root.
	Files map[string][]byte
	// Links are paths of symbolic links, which errors name.
	Links []string
	// Path is the folder to build, from the root; empty means the root.
	Path string
	// Tenant is who it is for; see package overrun.
	Tenant string
	// Spec is how the result is changed.
	Spec Spec
	// Reveal is called with each text in an object that shows a value of
	// Spec.Secrets, even if the build fails; it may be nil.
	Reveal func(text string)
	// Open opens encrypted files. If it is nil, those are read as they are, except
	// for those in Opened.
	Open sealed.Opener
	// Opened are encrypted files that were opened before, by their path.
	Opened map[string]sealed.File
}

// Spec has the fields of a Flux Kustomization that change what is built, with
// the same meaning.
type Spec struct {
	TargetNamespace         string
	NamePrefix, NameSuffix  string
	Patches                 []kustomize.Patch
	Images                  []kustomize.Image
	Components              []string
	IgnoreMissingComponents bool
	BuildMetadata           []string
	// Labels and Annotations are set on every object.
	Labels, Annotations map[string]string
	// Variables replace ${name} in every object. Without any, nothing is replaced
	// unless AlwaysSubstitute is set.
	Variables        map[string]string
	AlwaysSubstitute bool
	// Secrets names the Variables whose values must not be shown.
	Secrets []string
	// SecretAnnotation is set on each object that contains values of Secrets; the
	// zero value sets none.
	SecretAnnotation SecretAnnotation
	// StrictVariables makes a variable without a value and a default an error.
	StrictVariables bool
}

// SecretAnnotation is an annotation for objects that contain text of Secrets.
type SecretAnnotation struct {
	// Key is the annotation's key; empty for none. InName is its value where the
	// text is in the object's name, and InFields where it is elsewhere.
	Key, InName, InFields string
}

// Builder builds objects. One is made per process, and may be used by any number
// of goroutines.
type Builder struct {
	limits Limits
	// here runs kustomize in this process; apart runs builds outside of it, nil if
	// that is not possible.
	here  inProcess
	apart Runner
}

// maxCopied is how many bytes a JSON patch may copy within an object. It is also
// the limit of API servers.
const maxCopied = 3 << 20

// mostOverruns is how many builds may go on in this process after their time before no other begins.
const mostOverruns = 4

// New returns a Builder that does everything in this process. kustomize keeps
// schemas in globals, so builds that have schemas of their own wait for all
// others, and others for them. That is right for a program that builds one thing;
// one that builds for many uses NewApart.
func New(limits Limits) *Builder { return NewApart(limits, nil) }

// NewApart returns a Builder that runs large builds by the runner, as soon as
// they are found to be large, and those that would affect the results of others.
// Builds do not wait for each other.
func NewApart(limits Limits, apart Runner) *Builder {
	// Each copy may double the size of an object. The library with which kustomize
	// patches has this limit as a global, which the API server sets, too; it has
	// none by default.
	atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, 0, maxCopied)
	return &Builder{limits: limits.withDefaults(), here: inProcess{semaphore.NewWeighted(everybody), overrun.New(mostOverruns)}, apart: apart}
}

// Build builds the input. Equal input gives equal objects in equal order. When
// ctx ends, Build returns, and nothing of it runs on for longer than a second or
// two: kustomize cannot be interrupted, which is why builds that may take longer
// are run outside this process. Without a runner, kustomize runs until it is
// done: a hundred seconds for ten thousand objects.
func (b *Builder) Build(ctx context.Context, in Input) ([]*unstructured.Unstructured, error) {
	objects, err := b.buildHere(ctx, NewTree(in.Files).WithLinks(in.Links), nil, in)
	if errors.Is(err, errApart) {
		return b.buildApart(ctx, Job{Input: in, Limits: b.limits})
	}
	return objects, err
}

// BuildFrom is Build with the files of a Tree instead of in.Files. It also
// returns what was read; nil if the build failed, or was run outside this
// process.
func (b *Builder) BuildFrom(ctx context.Context, tree *Tree, in Input) ([]*unstructured.Unstructured, *Reads, error) {
	reads := &Reads{seen: map[query]string{}}
	objects, err := b.buildHere(ctx, tree, reads, in)
	if errors.Is(err, errApart) {
		in.Files, in.Links = tree.files, slices.Collect(maps.Keys(tree.links))
		objects, err = b.buildApart(ctx, Job{Input: in, Limits: b.limits})
		return objects, nil, err
	}
	if err != nil {
		reads = nil
	}
	return objects, reads, err
}

// buildHere builds in this process. It returns errApart if the build has to be
// run outside of it.
func (b *Builder) buildHere(ctx context.Context, tree *Tree, reads *Reads, in Input) ([]*unstructured.Unstructured, error) {
	i := newInspection(tree, reads, b.limits)
	i.ended, i.bounded = ctx.Err, b.apart != nil
	i.files.sealed = sealed.New(in.Open, in.Opened)
	root, err := i.folder(in.Path)
	if err != nil {
		return nil, err
	}
	plan, err := i.plan(ctx, root, in.Spec)
	if err != nil {
		return nil, err
	}
	if !i.plain.doubt {
		return b.objects(ctx, i.plain.objects, in, i.files.sealed.Texts())
	}
	if i.bounded && !i.small() {
		return nil, errApart
	}
	// Frees what is not needed any more, as the following may take long.
	i.parsed, i.plain.objects, i.plain.names = nil, nil, nil
	nodes, err := b.here.run(ctx, plan, in.Tenant)
	if errors.Is(err, overrun.ErrFull) && i.bounded {
		return nil, errApart // there it ends with its time
	}
	if err != nil {
		return nil, i.explain(err)
	}
	return b.objects(ctx, nodes, in, i.files.sealed.Texts())
}

// plan is the input of kustomize.
type plan struct {
	files      *memory
	root       string
	ownSchemas bool
}

// plan checks everything below the root that kustomize would read, and adds the
// Spec to the root's kustomization.
func (i *inspection) plan(ctx context.Context, root string, spec Spec) (plan, error) {
	k, name, err := i.kustomizationOf(ctx, root)
	if err != nil {
		return plan{}, err
	}
	var own types.Kustomization
	for _, to := range []*types.Kustomization{&own, &k} {
		if err := i.add(spec, root, to); err != nil {
			return plan{}, err
		}
	}
	weight, err := patterns.Kustomization(own)
	if err := i.weigh("spec", weight, err); err != nil {
		return plan{}, err
	}
	text, err := k8syaml.Marshal(k)
	if err != nil {
		return plan{}, fmt.Errorf("%s: %w: %w", name, ErrInvalid, err)
	}
	i.files = i.files.with(name, text)
	if err := i.kustomization(ctx, root, nil); err != nil {
		return plan{}, err
	}
	if i.objects == 0 {
		return plan{}, fmt.Errorf("%s: %w; add manifests, or change spec.path", display(root), ErrEmpty)
	}
	return plan{files: i.files, root: root, ownSchemas: i.ownSchemas}, nil
}

// kustomizationOf returns the folder's kustomization or, if it has none, one that
// lists its manifests.
func (i *inspection) kustomizationOf(ctx context.Context, root string) (types.Kustomization, string, error) {
	name, err := i.kustomizationFile(root)
	if err != nil {
		return types.Kustomization{}, "", err
	}
	if name != "" {
		k, err := i.parseKustomization(name)
		if err == nil && len(k.Resources)+len(k.Components)+len(k.Generators)+len(k.ConfigMapGenerator)+len(k.SecretGenerator) == 0 {
			err = fmt.Errorf("%s: %w; it lists no resources", name, ErrEmpty)
		}
		return k, name, err
	}
	found, err := i.manifests(ctx, root)
	if err != nil {
		return types.Kustomization{}, "", err
	}
	k := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: found,
	}
	return k, path.Join(root, konfig.DefaultKustomizationFileName()), nil
}

// add adds the Spec's fields to a kustomization.
func (i *inspection) add(spec Spec, root string, k *types.Kustomization) error {
	if spec.TargetNamespace != "" {
		k.Namespace = spec.TargetNamespace
	}
	if spec.NamePrefix != "" {
		k.NamePrefix = spec.NamePrefix
	}
	if spec.NameSuffix != "" {
		k.NameSuffix = spec.NameSuffix
	}
	if len(spec.BuildMetadata) > 0 {
		k.BuildMetadata = spec.BuildMetadata
	}
	for _, p := range spec.Patches {
		k.Patches = append(k.Patches, types.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	for _, image := range spec.Images {
		setImage(k, image)
	}
	for _, component := range spec.Components {
		if remote.Is(component) || path.IsAbs(component) {
			return fmt.Errorf("spec.components: %q: %w; components are folders of the source, by relative path", component, ErrRefused)
		}
		if spec.IgnoreMissingComponents && !i.files.isDir(path.Join(root, component)) {
			continue
		}
		k.Components = append(k.Components, component)
	}
	return nil
}

func selector(s *kustomize.Selector) *types.Selector {
	if s == nil {
		return nil
	}
	out := &types.Selector{LabelSelector: s.LabelSelector, AnnotationSelector: s.AnnotationSelector}
	out.Group, out.Version, out.Kind = s.Group, s.Version, s.Kind
	out.Name, out.Namespace = s.Name, s.Namespace
	return out
}

// setImage overrides an image of the same name, or adds it. Both tag and digest
// choose a version, so either replaces both.
func setImage(k *types.Kustomization, image kustomize.Image) {
	for n := range k.Images {
		if k.Images[n].Name != image.Name {
			continue
		}
		if image.NewName != "" {
			k.Images[n].NewName = image.NewName
		}
		if image.NewTag != "" || image.Digest != "" {
			k.Images[n].NewTag, k.Images[n].Digest = image.NewTag, image.Digest
		}
		return
	}
	k.Images = append(k.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
}

// display returns the name of a folder for people.
func display(dir string) string {
	if dir == "/" {
		return "./"
	}
	return "." + dir
}
