package build

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fluxcd/pkg/apis/kustomize"
	yamlv3 "go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

// What callers branch on. Every error of a build is one of these, about the
// files and not about us, so that trying again with the same files is no use;
// the exception is a context that ended.
var (
	// ErrPath says that the path is not among the files.
	ErrPath = errors.New("path not found")
	// ErrEmpty says that there is no manifest below the path.
	ErrEmpty = errors.New("no manifests")
	// ErrInvalid says that a file or object is malformed.
	ErrInvalid = errors.New("invalid manifest")
	// ErrDuplicate says that the same object is there twice.
	ErrDuplicate = errors.New("duplicate object")
	// ErrRefused says that the files ask for what is not allowed here.
	ErrRefused = errors.New("not allowed")
	// ErrTooLarge says that the files or objects exceed Limits.
	ErrTooLarge = errors.New("too large")
	// ErrKustomize says that kustomize could not build the files.
	ErrKustomize = errors.New("kustomize build failed")
	// ErrSubstitute says that variables could not be replaced.
	ErrSubstitute = errors.New("variable substitution failed")
)

// Limits bound a build. Zero fields take the default.
type Limits struct {
	// Document is the size of one YAML document or object, in bytes. Default 3 MiB.
	Document int
	// Objects is how many objects a build may make. Default 10,000.
	Objects int
	// Depth is how deep a document, or a chain of kustomizations, may be
	// nested. Default 100.
	Depth int
	// Aliases is how many nodes a document with YAML aliases may expand to.
	// Default 100,000.
	Aliases int
	// Bytes is the size of the files that are built, each counted as often as
	// it is used. Default 100 MiB.
	Bytes int
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field    *int
		fallback int
	}{{&l.Document, 3 << 20}, {&l.Objects, 10_000}, {&l.Depth, 100}, {&l.Aliases, 100_000}, {&l.Bytes, 100 << 20}} {
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
	// Path is the folder to build, from the root; empty means the root.
	Path string
	// Spec changes what is built.
	Spec Spec
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
	// Variables replace ${name} in every object. With none, nothing is
	// replaced unless AlwaysSubstitute is set.
	Variables        map[string]string
	AlwaysSubstitute bool
	// StrictVariables refuses a variable that has neither value nor default.
	StrictVariables bool
}

// Builder builds. One is made per process, and used from any number of
// goroutines: kustomize keeps schemas in global state, which a Builder guards.
type Builder struct {
	limits Limits
	// schemas is held for reading by builds with the usual schemas, and for
	// writing by those that bring their own.
	schemas sync.RWMutex
}

// maxCopied is how many bytes a JSON patch may copy within an object. It is
// also the API server's limit.
const maxCopied = 3 << 20

// New returns a Builder.
func New(limits Limits) *Builder {
	// Each copy may double an object. The library that kustomize patches with
	// takes its limit from here, as the API server does, and has none if nobody
	// sets it.
	atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, 0, maxCopied)
	return &Builder{limits: limits.withDefaults()}
}

// Build builds the input. Equal input gives equal objects in equal order.
// When ctx ends, Build returns; kustomize itself cannot be interrupted. What is
// left of it ends by itself, as its input is bounded, if not at once: it needs
// a second for a thousand objects, and a hundred times that for ten thousand.
func (b *Builder) Build(ctx context.Context, in Input) ([]*unstructured.Unstructured, error) {
	i := newInspection(in.Files, b.limits)
	root, err := i.folder(in.Path)
	if err != nil {
		return nil, err
	}
	plan, err := i.plan(ctx, root, in.Spec)
	if err != nil {
		return nil, err
	}
	if !i.plain.doubt {
		return b.objects(ctx, i.plain.objects, in.Spec)
	}
	resources, err := b.kustomize(ctx, plan)
	if err != nil {
		return nil, i.explain(err)
	}
	nodes := make([]*yamlv3.Node, 0, resources.Size())
	for _, r := range resources.Resources() {
		nodes = append(nodes, r.YNode())
	}
	return b.objects(ctx, nodes, in.Spec)
}

// plan is what kustomize is given.
type plan struct {
	files      *memory
	root       string
	ownSchemas bool
}

// plan checks everything below the root that kustomize would read, and adds
// the Spec to the root's kustomization.
func (i *inspection) plan(ctx context.Context, root string, spec Spec) (plan, error) {
	k, name, err := i.kustomizationOf(ctx, root)
	if err != nil {
		return plan{}, err
	}
	if err := i.add(spec, root, &k); err != nil {
		return plan{}, err
	}
	text, err := yaml.Marshal(k)
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

// kustomizationOf returns the folder's kustomization, or one that lists its
// manifests if it has none.
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

// add puts the Spec's fields into a kustomization.
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
		if isRemote(component) || path.IsAbs(component) {
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

// setImage overrides an image of the same name, or adds it. Tag and digest
// both choose a version, so that either replaces both.
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

// kustomize runs kustomize, and returns when it ends or ctx does.
func (b *Builder) kustomize(ctx context.Context, p plan) (resmap.ResMap, error) {
	type outcome struct {
		resources resmap.ResMap
		err       error
	}
	done := make(chan outcome, 1)
	go func() {
		resources, err := b.run(p)
		done <- outcome{resources, err}
	}()
	select {
	case o := <-done:
		return o.resources, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("kustomize build: %w", context.Cause(ctx))
	}
}

func (b *Builder) run(p plan) (out resmap.ResMap, err error) {
	if p.ownSchemas {
		b.schemas.Lock()
		defer b.schemas.Unlock()
		defer openapi.ResetOpenAPI()
	} else {
		b.schemas.RLock()
		defer b.schemas.RUnlock()
	}
	// kustomize panics on some malformed objects.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%w: malformed object: %v", ErrKustomize, r)
		}
	}()
	options := &krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The file system has nothing but the source in it; as with Flux, a
		// file of it may be used from any folder.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}
	out, err = krusty.MakeKustomizer(options).Run(p.files, p.root)
	if err != nil {
		err = fmt.Errorf("%w: %s", ErrKustomize, oneLine(err.Error()))
	}
	return out, err
}

// maxMessage is how much of kustomize's own words an error repeats, in bytes.
const maxMessage = 1000

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// display names a folder for people.
func display(dir string) string {
	if dir == "/" {
		return "./"
	}
	return "." + dir
}
