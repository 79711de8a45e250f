package build

import (
	"fmt"
	"path"
	"strings"

	"github.com/flotilla-io/flotilla/sources/build/patterns"
	"github.com/flotilla-io/flotilla/sources/build/remote"
	"github.com/flotilla-io/flotilla/sources/build/texts"
)

// plugins checks the configurations of kustomize's built-in plugins. All other
// plugins are programs, and are refused, as are built-in ones that access more
// than the source.
func (s scope) plugins(field string, entries []string) error {
	for _, entry := range entries {
		content := []byte(entry)
		if inline := strings.Contains(entry, "\n") || strings.HasPrefix(strings.TrimSpace(entry), "{"); !inline {
			name, err := s.local(field, entry)
			if err != nil {
				return err
			}
			if s.files.isDir(name) {
				return s.refuse(field, fmt.Sprintf("%q is a folder; name the files in it", clip(entry)))
			}
			s.files.sealed.Applied(trim(name))
			var found bool
			if content, found = s.files.read(name); !found {
				return s.missing(field, entry)
			}
			if err := stored(s.files, name, content); err != nil {
				return err
			}
		}
		docs, err := s.parse(content)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", trim(s.file), field, err)
		}
		s.count(docs)
		for _, doc := range docs {
			if doc.apiVersion != "builtin" || doc.kind == "HelmChartInflationGenerator" {
				return s.refuse(field, fmt.Sprintf("%s of %s is not a plugin that comes with kustomize", doc.kind, doc.apiVersion))
			}
			weight, err := patterns.File(doc.node)
			if err := s.weigh(trim(s.file)+": "+field, weight, err); err != nil {
				return err
			}
			if err := texts.Each(doc.node, func(key, value string) error { return s.pluginText(field, doc.kind, key, value) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// pluginText checks a text in a plugin's configuration: it may be an address, a
// file that the plugin of a kind reads, or YAML itself.
func (s scope) pluginText(field, kind, key, value string) error {
	if remote.Is(value) {
		return s.refuse(field, fmt.Sprintf("%q is remote", clip(value)))
	}
	switch key {
	case "path", "paths":
		if name := path.Join(s.dir, value); s.files.isFile(name) {
			if err := s.yamlFile(name); err != nil || kind != "ReplacementTransformer" {
				return err
			}
			return weighReplacements(s, name)
		}
	case "files", "envs", "env":
		as, file := "", value
		if key == "files" {
			as = path.Base(value)
			if before, after, named := strings.Cut(value, "="); named {
				as, file = before, after
			}
		}
		name := path.Join(s.dir, file)
		s.files.sealed.Generates(trim(name), kind != "ConfigMapGenerator", as)
		return s.use(name)
	}
	switch key {
	case "patch", "patches", "paths", "jsonOp":
		return s.text(field, value)
	}
	return nil
}

// weighReplacements weighs a file of replacements.
func weighReplacements(s scope, name string) error {
	docs, err := s.documents(name)
	for n := 0; err == nil && n < len(docs); n++ {
		weight, fault := patterns.File(docs[n].node)
		err = s.weigh(trim(name), weight, fault)
	}
	return err
}

// weigh counts what kustomize does for regular expressions, of which none may be too large.
func (a *amounts) weigh(at string, weight int, err error) error {
	a.sayings += weight
	if err != nil {
		return fmt.Errorf("%s: %w: %w", at, ErrRefused, err)
	}
	return nil
}
