package sops

import (
	"bytes"
	"regexp"
	"strings"

	"gopkg.in/ini.v1"
)

const (
	dotenvPrefix = metadataKey + "_"
	escaped      = `\n`
)

var sealedDotenv = regexp.MustCompile(`(?m)^sops_(mac|version|lastmodified)=`)

// line is one of a file of environment variables.
type line struct{ key, value string }

// readDotenv reads a file of environment variables.
func readDotenv(content []byte) (*File, error) {
	if !sealedDotenv.Match(content) {
		return nil, nil
	}
	var kept []*line
	about := map[string]string{}
	p := part{}
	for text := range strings.SplitSeq(string(content), "\n") {
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		key, value, found := strings.Cut(text, "=")
		if !found {
			return nil, invalid("a line of it is no KEY=VALUE")
		}
		value = strings.ReplaceAll(value, escaped, "\n")
		if name, is := strings.CutPrefix(key, dotenvPrefix); is {
			about[name] = value
			continue
		}
		l := &line{key, value}
		kept = append(kept, l)
		p.leaves = append(p.leaves, textLeaf([]string{key}, value, func(text string) { l.value = text }))
	}
	p.raw = unflatten(about)
	return &File{parts: []part{p}, encode: func() ([]byte, error) {
		var out bytes.Buffer
		for _, l := range kept {
			out.WriteString(l.key + "=" + strings.ReplaceAll(l.value, "\n", escaped) + "\n")
		}
		return out.Bytes(), nil
	}}, nil
}

// textLeaf is a value of a format in which all are texts.
func textLeaf(path []string, is string, set func(text string)) leaf {
	return leaf{path: path, text: is, isText: true, covered: []byte(is), set: func(v value) error {
		if v.kind == kindComment {
			v.text = ""
		}
		set(v.written())
		return nil
	}}
}

var sealedINI = regexp.MustCompile(`(?m)^\[sops\]\s*$`)

// readINI reads an INI file.
func readINI(content []byte) (*File, error) {
	if !sealedINI.Match(content) {
		return nil, nil
	}
	file, err := ini.LoadSources(ini.LoadOptions{AllowNonUniqueSections: true}, content)
	if err != nil { // which may quote a line
		return nil, invalid("it is no INI file")
	}
	about := map[string]string{}
	p := part{}
	for _, section := range file.Sections() {
		section.Comment = withoutSealed(section.Comment)
		for _, key := range section.Keys() {
			key.Comment = withoutSealed(key.Comment)
			if section.Name() == metadataKey {
				about[key.Name()] = strings.ReplaceAll(key.Value(), escaped, "\n")
				continue
			}
			p.leaves = append(p.leaves, textLeaf([]string{section.Name(), key.Name()}, key.Value(), key.SetValue))
		}
	}
	file.DeleteSection(metadataKey)
	p.raw = unflatten(about)
	return &File{parts: []part{p}, encode: func() ([]byte, error) {
		var out bytes.Buffer
		if _, err := file.WriteTo(&out); err != nil {
			return nil, invalid("it cannot be written as INI")
		}
		return out.Bytes(), nil
	}}, nil
}

func withoutSealed(comment string) string {
	if strings.Contains(comment, string(mark)) {
		return ""
	}
	return comment
}
