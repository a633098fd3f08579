#include "gpu/gl/program.h"

#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

const char* StageName(GLenum stage) {
  return stage == GL_VERTEX_SHADER ? "vertex" : stage == GL_COMPUTE_SHADER ? "compute" : "fragment";
}

// A shader object for as long as its program is being linked.
class Shader {
 public:
  Shader(std::string_view name, GLenum stage, std::string_view source)
      : id_(glCreateShader(stage)) {
    const GLchar* text = source.data();
    const auto length = static_cast<GLint>(source.size());
    glShaderSource(id_, 1, &text, &length);
    glCompileShader(id_);
    GLint compiled = GL_FALSE;
    glGetShaderiv(id_, GL_COMPILE_STATUS, &compiled);
    if (compiled == GL_TRUE) return;
    std::string log(1024, '\0');
    GLsizei used = 0;
    glGetShaderInfoLog(id_, static_cast<GLsizei>(log.size()), &used, log.data());
    log.resize(static_cast<std::size_t>(used));
    glDeleteShader(id_);
    throw GlError(std::string("compiling the ") + StageName(stage) + " shader of " +
                  std::string(name) + " failed: " + log);
  }
  Shader(const Shader&) = delete;
  Shader& operator=(const Shader&) = delete;
  ~Shader() { glDeleteShader(id_); }

  GLuint id() const { return id_; }

 private:
  GLuint id_;
};

}  // namespace

Program::Program(std::string_view name, std::string_view vertex_source,
                 std::string_view fragment_source) {
  const Shader vertex(name, GL_VERTEX_SHADER, vertex_source);
  const Shader fragment(name, GL_FRAGMENT_SHADER, fragment_source);
  id_ = glCreateProgram();
  glAttachShader(id_, vertex.id());
  glAttachShader(id_, fragment.id());
  glLinkProgram(id_);
  glDetachShader(id_, vertex.id());
  glDetachShader(id_, fragment.id());
  CheckLinked(name);
}

Program::Program(std::string_view name, std::string_view compute_source) {
  const Shader compute(name, GL_COMPUTE_SHADER, compute_source);
  id_ = glCreateProgram();
  glAttachShader(id_, compute.id());
  glLinkProgram(id_);
  glDetachShader(id_, compute.id());
  CheckLinked(name);
}

void Program::CheckLinked(std::string_view name) {
  GLint linked = GL_FALSE;
  glGetProgramiv(id_, GL_LINK_STATUS, &linked);
  if (linked == GL_TRUE) return;
  std::string log(1024, '\0');
  GLsizei used = 0;
  glGetProgramInfoLog(id_, static_cast<GLsizei>(log.size()), &used, log.data());
  log.resize(static_cast<std::size_t>(used));
  glDeleteProgram(id_);
  throw GlError("linking " + std::string(name) + " failed: " + log);
}

Program::Program(Program&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

Program::~Program() {
  if (id_ != 0) glDeleteProgram(id_);
}

void Program::Use() const { glUseProgram(id_); }

GLint Program::Uniform(const char* uniform) const {
  const GLint location = glGetUniformLocation(id_, uniform);
  if (location < 0) throw GlError("the program has no uniform " + std::string(uniform));
  return location;
}

GLint Program::UniformIfUsed(const char* uniform) const {
  return glGetUniformLocation(id_, uniform);
}

}  // namespace tidemark::gl
