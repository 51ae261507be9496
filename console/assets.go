package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed web
var assets embed.FS

// assetStore serves the embedded scripts, styles and charts. Their URLs contain a digest of all of
// them, so that browsers may cache them for ever and never mix two versions.
type assetStore struct{ version string }

func newAssets() *assetStore {
	digest := sha256.New()
	err := fs.WalkDir(assets, "web", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := assets.ReadFile(name)
		digest.Write([]byte(name))
		digest.Write(b)
		return err
	})
	if err != nil {
		// They are part of the program: a programmer's error.
		panic(err)
	}
	return &assetStore{version: hex.EncodeToString(digest.Sum(nil)[:6])}
}

// address of a file, for templates.
func (s *assetStore) address(name string) string { return "/web/" + s.version + "/" + name }

// ServeHTTP serves GET /web/{version}/{file...}.
func (s *assetStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	b, err := assets.ReadFile("web/" + name)
	if err != nil || path.Ext(name) == ".html" {
		http.NotFound(w, r)
		return
	}
	if r.PathValue("version") == s.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", kind(path.Ext(name)))
	// A client that went away is not our error.
	_, _ = w.Write(b)
}

// kind is the media type of a file. That of scripts is fixed: some systems'
// tables have another one, which browsers refuse for modules.
func kind(extension string) string {
	if extension == ".js" {
		return "text/javascript; charset=utf-8"
	}
	if t := mime.TypeByExtension(extension); t != "" {
		return t
	}
	return "text/plain; charset=utf-8"
}
