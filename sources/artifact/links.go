package artifact

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"slices"
)

// linksRecord is the record of an archive's global header that has the names of
// symbolic links, as a JSON list.
const linksRecord = "FLOTILLA.links"

const (
	// mostLinks is how many links are recorded, and mostLinkNames how many bytes
	// their names may have. Of the others nothing is known.
	mostLinks     = 1_000
	mostLinkNames = 128 << 10
)

// recorded returns the first names, as many as are recorded.
func recorded(names []string) []string {
	size := 0
	for n, name := range names {
		if size += len(name); n == mostLinks || size > mostLinkNames {
			return names[:n]
		}
	}
	return names
}

// writeLinks writes the header about links; without any there is none.
func writeLinks(out *tar.Writer, names []string) error {
	if len(names) == 0 {
		return nil
	}
	text, err := json.Marshal(recorded(names))
	if err != nil {
		return fmt.Errorf("pack links: %w", err)
	}
	header := &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{linksRecord: string(text)}}
	if err := out.WriteHeader(header); err != nil {
		return fmt.Errorf("pack links: %w", err)
	}
	return nil
}

// links takes the names of links from the record about them. It is for messages
// alone: what makes no sense is left out.
func (x *extraction) links(record string) {
	var names []string
	if record == "" || json.Unmarshal([]byte(record), &names) != nil {
		return
	}
	slices.Sort(names)
	for _, raw := range recorded(names) {
		name, err := entryName(raw)
		if _, known := x.files[name]; err == nil && !known && name != "." {
			x.files[name] = File{Link: true}
		}
	}
}
