package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/flotilla-io/flotilla/sources/build/patterns"
	"github.com/flotilla-io/flotilla/sources/build/remote"
)

// inspection checks everything that kustomize would read, before it does.
type inspection struct {
	files  *memory
	limits Limits

	checked    map[string]int        // number of nodes, by file that was checked
	parsed     map[string][]document // by manifest that was parsed and not checked yet
	manifested map[string]contained  // by manifest
	where      map[string][]string   // files, by object
	first      map[string]string     // where an object is in a file, by file and object
	amounts
	ownSchemas bool         // a kustomization has OpenAPI schemas of its own
	ownTypes   bool         // a kustomization has definitions of kinds
	ended      func() error // returns why to stop; nil for never
	plain      plain
}

func newInspection(files *Tree, reads *Reads, limits Limits) *inspection {
	return &inspection{
		files: &memory{Tree: files, reads: reads}, limits: limits,
		checked: map[string]int{}, parsed: map[string][]document{}, manifested: map[string]contained{}, where: map[string][]string{}, first: map[string]string{},
		plain: plain{names: map[string]bool{}},
	}
}

// folder returns the absolute form of a path from the root.
func (i *inspection) folder(raw string) (string, error) {
	if slices.Contains(strings.Split(raw, "/"), "..") {
		return "", fmt.Errorf("spec.path %q: %w; it leads out of the source", raw, ErrPath)
	}
	dir := path.Clean("/" + raw)
	if i.files.isFile(dir) {
		return "", fmt.Errorf("spec.path %q: %w; it is a file, name its folder", raw, ErrPath)
	}
	if link := i.files.link(dir); link != "" {
		return "", fmt.Errorf("spec.path %q: %w: %s is a symbolic link, which is not followed: name the folder itself", raw, ErrPath, trim(link))
	}
	if !i.files.isDir(dir) || (dir == "/" && len(i.files.files) == 0) {
		return "", fmt.Errorf("spec.path %q: %w in the source%s", raw, ErrPath, i.folders())
	}
	return dir, nil
}

// maxNamed is how many folders or files a message names.
const maxNamed = 5

// folders lists the folders of the root, so that users notice typing mistakes.
func (i *inspection) folders() string {
	var found []string
	top, _ := i.files.list("/")
	for _, name := range top {
		if i.files.isDir(name) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ", which has no folders"
	}
	more := ""
	if len(found) > maxNamed {
		found, more = found[:maxNamed], ", …"
	}
	return fmt.Sprintf(", which has %s%s", strings.Join(found, ", "), more)
}

// kustomizationFile returns the path of the folder's kustomization; empty for
// none.
func (i *inspection) kustomizationFile(dir string) (string, error) {
	var found []string
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(dir, base)
		if i.files.isFile(name) {
			found = append(found, name)
		}
		if i.files.links[name] {
			return "", fmt.Errorf("%s: %w: it %s", trim(name), ErrInvalid, notFollowed)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("%s: %w; it has several kustomizations (%s), keep one", display(dir), ErrInvalid, strings.Join(found, ", "))
	}
}

func (i *inspection) parseKustomization(name string) (types.Kustomization, error) {
	var k types.Kustomization
	docs, err := i.documents(name)
	if err != nil {
		return k, err
	}
	i.count(docs)
	content, _ := i.files.read(name)
	if err := k.Unmarshal(content); err != nil {
		return k, fmt.Errorf("%s: %w: %s", trim(name), ErrInvalid, oneLine(err.Error()))
	}
	k.FixKustomization()
	if faults := k.EnforceFields(); len(faults) > 0 {
		return k, fmt.Errorf("%s: %w: %s", trim(name), ErrInvalid, strings.Join(faults, "; "))
	}
	return k, nil
}

// trim returns a path as users write it.
func trim(name string) string { return strings.TrimPrefix(name, "/") }

// maxVisits bounds how many kustomizations a build reads, counting each as often
// as it is used.
const maxVisits = 2000

// kustomization checks the kustomization of a folder, and everything that it
// refers to. above are the folders that lead to it.
func (i *inspection) kustomization(ctx context.Context, dir string, above []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if i.visits++; i.visits > maxVisits || len(above) > i.limits.Depth {
		return fmt.Errorf("%s: %w: kustomizations are nested more than %d deep, or used more than %d times", display(dir), ErrTooLarge, i.limits.Depth, maxVisits)
	}
	if slices.Contains(above, dir) {
		return fmt.Errorf("%s: %w: it uses itself (%s)", display(dir), ErrInvalid, strings.Join(append(above, dir), " uses "))
	}
	// kustomize reports a folder that contains one which uses it as a cycle.
	i.plain.doubt = i.plain.doubt || slices.ContainsFunc(above, func(user string) bool { return strings.HasPrefix(user, strings.TrimSuffix(dir, "/")+"/") })
	name, err := i.kustomizationFile(dir)
	if err != nil {
		return err
	}
	if name == "" && above == nil {
		// The one that was generated for a root without one.
		name = path.Join(dir, konfig.DefaultKustomizationFileName())
	}
	if name == "" {
		return fmt.Errorf("%s: %w: it is used by %s and has no kustomization.yaml", display(dir), ErrInvalid, display(above[len(above)-1]))
	}
	if err := i.use(name); err != nil {
		return err
	}
	k, err := i.parseKustomization(name)
	if err != nil {
		return err
	}
	s := scope{inspection: i, file: name, dir: dir, above: append(slices.Clone(above), dir)}
	return s.check(ctx, k)
}

// scope is a kustomization that is being checked.
type scope struct {
	*inspection
	file  string
	dir   string
	above []string
}

func (s scope) check(ctx context.Context, k types.Kustomization) error {
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return s.refuse("helmCharts", "Helm charts are not built here; render the chart and commit the result")
	}
	if err := s.make(trim(s.file), len(k.ConfigMapGenerator)+len(k.SecretGenerator)+len(k.Generators)); err != nil {
		return err
	}
	weight, err := patterns.Kustomization(k)
	if err := s.weigh(trim(s.file), weight, err); err != nil {
		return err
	}
	s.plain.kustomization(k)
	s.ownSchemas = s.ownSchemas || len(k.OpenAPI) > 0
	s.ownTypes = s.ownTypes || len(k.Crds) > 0
	steps := []func() error{
		func() error { return s.resources(ctx, k.Resources) },
		func() error { return s.components(ctx, k.Components) },
		func() error { return s.localFiles("crds", k.Crds...) },
		func() error { return s.localFiles("configurations", k.Configurations...) },
		func() error { return s.patches(k) },
		func() error { return s.generators(k) },
		func() error { return s.plugins("generators", k.Generators) },
		func() error { return s.plugins("transformers", k.Transformers) },
		func() error { return s.plugins("validators", k.Validators) },
	}
	if schema := k.OpenAPI["path"]; schema != "" {
		steps = append(steps, func() error { return s.localFiles("openapi", schema) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) refuse(field, why string) error {
	return fmt.Errorf("%s: %s: %w: %s", trim(s.file), field, ErrRefused, why)
}

func (s scope) missing(field, entry string) error {
	if link := s.files.link(path.Join(s.dir, entry)); link != "" {
		return fmt.Errorf("%s: %s: %w: %s %s", trim(s.file), field, ErrInvalid, trim(link), notFollowed)
	}
	return fmt.Errorf("%s: %s: %w: %q is not in the source; add it, or remove the line", trim(s.file), field, ErrInvalid, entry)
}

// local returns the path of an entry of a kustomization, which must be neither
// remote nor absolute.
func (s scope) local(field, entry string) (string, error) {
	switch {
	case remote.Is(entry):
		return "", s.refuse(field, fmt.Sprintf("%q is remote; copy it into the source, or fetch it with a source of its own", clip(entry)))
	case path.IsAbs(entry):
		return "", s.refuse(field, fmt.Sprintf("%q is absolute; use a relative path", clip(entry)))
	}
	return path.Join(s.dir, entry), nil
}

func (s scope) resources(ctx context.Context, entries []string) error {
	for _, entry := range entries {
		name, err := s.local("resources", entry)
		if err != nil {
			return err
		}
		switch {
		case s.files.isFile(name):
			err = s.manifest(name)
		case s.files.isDir(name):
			err = s.kustomization(ctx, name, s.above)
		default:
			err = s.missing("resources", entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s scope) components(ctx context.Context, entries []string) error {
	for _, entry := range entries {
		name, err := s.local("components", entry)
		if err != nil {
			return err
		}
		if !s.files.isDir(name) {
			return s.missing("components", entry)
		}
		if err := s.kustomization(ctx, name, s.above); err != nil {
			return err
		}
	}
	return nil
}

// localFiles checks YAML files that are read as a whole.
func (s scope) localFiles(field string, entries ...string) error {
	for _, entry := range entries {
		name, err := s.local(field, entry)
		if err != nil {
			return err
		}
		if !s.files.isFile(name) {
			return s.missing(field, entry)
		}
		if err := s.yamlFile(name); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) patches(k types.Kustomization) error {
	for _, p := range append(slices.Clone(k.Patches), k.PatchesJson6902...) {
		if err := s.fileOrText("patches", p.Path, p.Patch); err != nil {
			return err
		}
	}
	for _, p := range k.PatchesStrategicMerge {
		text := string(p)
		if name, err := s.local("patchesStrategicMerge", text); !strings.Contains(text, "\n") && (err != nil || s.files.isFile(name) || s.files.link(name) != "") {
			if err := s.localFiles("patchesStrategicMerge", text); err != nil {
				return err
			}
			continue
		}
		if err := s.text("patchesStrategicMerge", text); err != nil {
			return err
		}
	}
	for _, r := range k.Replacements {
		if r.Path == "" {
			continue
		}
		if err := s.localFiles("replacements", r.Path); err != nil {
			return err
		}
		if err := weighReplacements(s, path.Join(s.dir, r.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) fileOrText(field, file, text string) error {
	if file != "" {
		if err := s.localFiles(field, file); err != nil {
			return err
		}
	}
	return s.text(field, text)
}

// text checks YAML that is inline in the kustomization.
func (s scope) text(field, text string) error {
	docs, err := s.parse([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %s: %w", trim(s.file), field, err)
	}
	s.count(docs)
	return nil
}

func (s scope) generators(k types.Kustomization) error {
	for _, g := range k.ConfigMapGenerator {
		if err := s.generator(g.KvPairSources, false); err != nil {
			return err
		}
	}
	for _, g := range k.SecretGenerator {
		if err := s.generator(g.KvPairSources, true); err != nil {
			return err
		}
	}
	return nil
}

// generator checks the files of a generator. Only those of Secrets are opened if
// they are encrypted.
func (s scope) generator(source types.KvPairSources, secret bool) error {
	for _, entry := range source.FileSources {
		key, file, named := strings.Cut(entry, "=")
		if !named {
			file, key = entry, path.Base(entry)
		}
		if err := s.generatorFile(file, secret, key); err != nil {
			return err
		}
	}
	// Here a '=' is part of the path: kustomize reads the entry as it is.
	for _, entry := range append(slices.Clone(source.EnvSources), source.EnvSource) {
		if err := s.generatorFile(entry, secret, ""); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) generatorFile(entry string, secret bool, key string) error {
	const field = "configMapGenerator or secretGenerator"
	if entry == "" {
		return nil
	}
	name, err := s.local(field, entry)
	if err != nil {
		return err
	}
	if !s.files.isFile(name) {
		return s.missing(field, entry)
	}
	s.files.sealed.Generates(trim(name), secret, key)
	return s.use(name)
}

// clip cuts an untrusted text for a message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// manifests returns the manifests of a folder without a kustomization: its YAML
// files, and the folders below it that have a kustomization, sorted.
func (i *inspection) manifests(ctx context.Context, root string) ([]string, error) {
	var out []string
	pending := []string{root}
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir := pending[0]
		pending = pending[1:]
		within, _ := i.files.list(dir)
		for _, base := range within {
			name := path.Join(dir, base)
			relative := "." + strings.TrimPrefix(name, strings.TrimSuffix(root, "/"))
			switch own, err := i.kustomizationFile(name); {
			case err != nil:
				return nil, err
			case own != "":
				out = append(out, relative)
			case i.files.isDir(name):
				pending = append(pending, name)
			case path.Ext(base) == ".yaml" || path.Ext(base) == ".yml":
				docs, err := i.documents(name)
				if err != nil {
					return nil, err
				}
				if len(docs) > 0 { // kustomize refuses a file that has only comments
					out = append(out, relative)
					i.parsed[name] = docs
				}
			}
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w; add .yaml files, or change spec.path", display(root), ErrEmpty)
	}
	return out, nil
}

// explain adds to an error of kustomize the files of an object that it found
// twice.
func (i *inspection) explain(err error) error {
	if !errors.Is(err, ErrKustomize) {
		return err
	}
	match := registered.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(i.where)) {
		files := i.where[id]
		kind, name, _ := strings.Cut(id, " ")
		if len(files) > 1 && strings.HasPrefix(match[1], kind+".") && strings.Contains(match[1], "/"+name+".") {
			return fmt.Errorf("%s %s: %w: it is in %s; remove one", kind, name, ErrDuplicate, strings.Join(files, " and in "))
		}
	}
	return fmt.Errorf("%w: %s; it is reached twice, remove one way", ErrDuplicate, match[1])
}

var registered = regexp.MustCompile(`already registered id: (\S+)`)
