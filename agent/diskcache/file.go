package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errDamaged says that a file's content is not what its hash says.
var errDamaged = errors.New("the file is damaged")

// partial begins the names of files that are being written.
const partial = ".partial-"

// writeFile puts content under path, whole or not at all, with its hash before it.
func writeFile(path string, content []byte) (err error) {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, partial) // readable by its owner alone
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	sum := sha256.Sum256(content)
	_, err = file.Write(append(hex.AppendEncode(nil, sum[:]), '\n'))
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// readFile returns what was put under path.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	recorded, content, found := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(content)
	if !found || string(recorded) != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s: %w", path, errDamaged)
	}
	return content, nil
}

// sweep removes what an earlier run was writing when it ended.
func sweep(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), partial) {
			return err
		}
		return os.Remove(path)
	})
}
